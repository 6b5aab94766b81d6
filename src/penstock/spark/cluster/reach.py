"""Whether the executors reach the state directory: asked before anything is written there in earnest."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.spark.cluster.executors import Executor
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = ".reach"
STATE = "the state directory"


class UnreachableState(PenstockError):
    """A state directory, or a queue or sink elsewhere, that executors do not share with the driver."""

    def __init__(self, folder: Path, places: tuple[str, ...], what: str = STATE):
        self.folder = folder
        self.places = places
        missing = "queues and checkpoints" if what == STATE else "its files"
        super().__init__(
            f"{what} must be one that every worker reads and writes, got {str(folder)!r}, which "
            f"{', '.join(places)} cannot: {missing} would be missing there. Name a shared or "
            "mounted directory under the same path on all of them"
        )


@dataclass(frozen=True)
class Reach:
    """What executors said that were asked for a folder. One that did not get its task has said nothing."""

    failed: tuple[Executor, ...] = ()
    answered: frozenset[str] = frozenset()
    """Their ids, those that failed included."""


def asked_for(session: SparkSession, state: Path, executors: Iterable[Executor]) -> Reach:
    """Whether executors see what the driver writes to `state`, and it what they write; a task for each."""
    asked = {each.id: each for each in executors}
    if not asked:
        return Reach()
    token = uuid.uuid4().hex
    folder = state / FOLDER / token
    folder.mkdir(parents=True)
    try:
        (folder / token).touch()
        lines = "\n".join(f"{each.id} {each.host}" for each in asked.values())
        probe = jvm(session).penstock.ReachProbe
        answers = str(probe.ask(session.sparkContext._jsc.sc(), lines, str(folder), token))
        answered = frozenset(line.split(" ")[0] for line in answers.splitlines())
        failed = tuple(asked[id] for id in _failed(answers, folder, token) if id in asked)
        return Reach(failed, answered & asked.keys())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            folder.parent.rmdir()


def _failed(answers: str, folder: Path, token: str) -> list[str]:
    failed = set()
    for line in answers.splitlines():
        id, reads, writes = line.split(" ")
        if reads != "true" or writes != "true" or not (folder / f"{token}-{id}").exists():
            failed.add(id)
    return sorted(failed)
