"""What a pipeline needs to know of the things at its ends; their settings are their own."""

from __future__ import annotations

from typing import Literal, Protocol, get_args

Guarantee = Literal["exactly once", "at least once"]
GUARANTEES: tuple[str, ...] = get_args(Guarantee)


class SourceSpec(Protocol):
    """Where rows come from. `native`: Spark reads it itself; otherwise it fills a queue."""

    @property
    def native(self) -> bool: ...


class SinkSpec(Protocol):
    """Where rows go, and how often each arrives there when a turn runs again after a crash."""

    @property
    def guarantee(self) -> str: ...


def source_mistake(spec: object) -> str | None:
    """What is wrong with a source's settings, if anything."""
    if isinstance(getattr(spec, "native", None), bool):
        return None
    return (
        f"a source must have `native`, True or False, got {type(spec).__name__}: "
        "it is not known whether Spark or a queue reads it"
    )


def sink_mistake(spec: object) -> str | None:
    """What is wrong with a sink's settings, if anything."""
    guarantee = getattr(spec, "guarantee", None)
    if guarantee in GUARANTEES:
        return None
    came = type(spec).__name__ if guarantee is None else f"{guarantee!r} from {type(spec).__name__}"
    return (
        f"a sink must have `guarantee`, one of {', '.join(map(repr, GUARANTEES))}, got {came}: "
        "its rows could be lost or doubled unnoticed"
    )
