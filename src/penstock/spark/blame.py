"""Which operator of a stage failed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from penstock.errors import PenstockError
from penstock.stages.build import OperatorError
from penstock.stages.stage import Stage


def blame(stage: Stage, error: BaseException, runs: Callable[[str], bool] | None) -> PenstockError:
    """The error with the operator's name.

    `runs(name)` tells whether everything before that operator still runs on the rows of the turn;
    without it (a turn with state cannot be repeated in parts) all operators are named.
    """
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, OSError) or not stage.operators:
        return PenstockError(
            f"stage {stage.name!r} failed: {root_message(error)}: the pipeline stops, its queues are kept"
        )
    guilty = _guilty(stage, runs)
    failed = OperatorError(stage.pipeline, guilty, f"failed: {root_message(error)}")
    failed.__cause__ = error
    return failed


def _guilty(stage: Stage, runs: Callable[[str], bool] | None) -> str:
    names = [operator.name for operator in stage.operators]
    if len(names) == 1:
        return names[0]
    if runs is None:
        return " or ".join(names)
    for before, name in pairwise(names):
        if not runs(name):
            return before
    return names[-1]


def root_message(error: BaseException) -> str:
    """What went wrong, without the JVM's stack."""
    cause = getattr(error, "java_exception", None)
    if cause is not None:
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.getMessage() or cause.toString())
    else:
        text = str(error) or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A Python worker's failure arrives as a traceback, whose last line says what was raised.
    wanted = (
        lines[-1] if lines and any(line.startswith("Traceback") for line in lines) else (lines or [text])[0]
    )
    return wanted[:500]
