"""Contexts (Cameo, section 5): what travels with the data of a turn, and what comes back from below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.scheduling.progress import Heard

PATIENT_SECONDS = 3600.0
"""The target of a stage that has none below it: an hour."""


@dataclass(frozen=True, slots=True)
class PriorityContext:
    """Goes with a message, here a segment, to the stage it is for. Less is sooner.

    `progress` is the frontier progress p_MF, the logical time that the stage waits for; `time` the frontier
    time t_MF, when that is or will be there; `latency_seconds` is L. A policy may keep more in `fields`.
    """

    id: str
    pri_local: float
    pri_global: float
    progress: float
    time: float
    latency_seconds: float
    deferred: bool = False
    """Whether its result can only leave with rows that have not come yet."""
    fields: Mapping[str, float] = field(default_factory=dict)
    complete: bool = False
    """Whether the rows of a window are all there: its result leaves with the next turn."""

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "local": self.pri_local,
            "global": self.pri_global,
            "progress": self.progress,
            "time": self.time,
            "latency": self.latency_seconds,
            "deferred": self.deferred,
            "fields": dict(self.fields),
            "complete": self.complete,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> PriorityContext:
        return cls(
            id=str(stored["id"]),
            pri_local=float(stored["local"]),
            pri_global=float(stored["global"]),
            progress=float(stored["progress"]),
            time=float(stored["time"]),
            latency_seconds=float(stored["latency"]),
            deferred=bool(stored["deferred"]),
            fields={name: float(value) for name, value in stored["fields"].items()},
            # Contexts from before it was told apart have none.
            complete=bool(stored.get("complete", False)),
        )


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """Comes back from a stage to those above it: what a turn of it costs, and the costliest path below it."""

    cost_seconds: float = 0.0
    path_seconds: float = 0.0

    @property
    def total_seconds(self) -> float:
        return self.cost_seconds + self.path_seconds


@dataclass(frozen=True, slots=True)
class Message:
    """Rows that come to a stage together.

    `time` is t_M, when they arrived at their source; `heard` is what they tell of the event time of each of
    their sources. `before` is what the policy has kept in the `fields` of the message that came before them.
    """

    id: str
    rows: int
    time: float
    heard: tuple[Heard, ...] = ()
    before: Mapping[str, float] = field(default_factory=dict)
    seen: float | None = None
    """When it was seen at the stage, where that is long after `time`."""

    @property
    def progress(self) -> float | None:
        """Their logical time p_M: how far event time has come with all of them; None where they have none."""
        return min((each.progress for each in self.heard), default=None)


@dataclass(frozen=True, slots=True)
class Frontier:
    """The window that a stage completes next: the progress it needs, and when that is there."""

    progress: float
    time: float | None
    """None where it cannot be predicted."""
    complete: bool


@dataclass(frozen=True, slots=True)
class Target:
    """The stage that a message is for, as its converter knows it.

    `slide_seconds` is the step of its window, None for one without windows; `upstream_slide_seconds` that of
    the stage the message comes from. `share` is the tenant's part of the throughput, None without one.
    """

    stage: str
    tenant: str
    latency_seconds: float = PATIENT_SECONDS
    slide_seconds: float | None = None
    upstream_slide_seconds: float = 0.0
    reply: ReplyContext = ReplyContext()
    frontier: Frontier | None = None
    share: float | None = None


def transform(
    progress: float, slide: float | None, upstream_slide: float = 0.0, offset: float = 0.0
) -> float:
    """The frontier progress p_MF of a message with progress p_M (TRANSFORM, section 4.3).

    >>> transform(12.5, slide=10.0), transform(12.5, slide=None), transform(20.0, slide=10.0)
    (20.0, 12.5, 30.0)
    """
    if slide is None or upstream_slide >= slide:
        return progress
    return last_step(progress, slide, offset) + slide


def last_step(progress: float, slide: float, offset: float = 0.0) -> float:
    """The last step of a window at or before `progress`; counted in microseconds, as Spark does.

    >>> last_step(1.3, slide=0.1), last_step(12.0, slide=10.0, offset=5.0)
    (1.3, 5.0)
    """
    step, begin = round(slide * 1e6), round(offset * 1e6)
    return ((round(progress * 1e6) - begin) // step * step + begin) / 1e6
