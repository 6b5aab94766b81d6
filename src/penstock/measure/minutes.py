"""The figures of one stage over one minute of the clock, as they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.measure.stage_meter import StageFigures

MINUTE_SECONDS = 60.0


def minute_of(time: float) -> float:
    """When the minute of a time began.

    >>> minute_of(1_700_000_030.5)
    1699999980.0
    """
    return time // MINUTE_SECONDS * MINUTE_SECONDS


@dataclass(frozen=True, slots=True)
class StageMinute:
    """A stage in the minute that began at `begin`, in a pool of `pool_slots` slots.

    The minute in which an engine starts or stops is partial: `figures.seconds` tells how long it was. `first`
    tells the first operations of a pipeline, which the others' rates are relative to.
    """

    begin: float
    stage: str
    pool_slots: int
    figures: StageFigures
    pipeline: str = ""
    first: bool = False

    @property
    def slot_share(self) -> float:
        """Its share, 0 to 1, of the pool's time."""
        whole = self.figures.seconds * self.pool_slots
        return self.figures.slot_seconds / whole if whole > 0.0 else 0.0

    @property
    def clock(self) -> str:
        """The time of day in UTC: `16:02`."""
        return datetime.fromtimestamp(self.begin, UTC).strftime("%H:%M")

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StageMinute:
        """The minute that `to_json` was called on."""
        return cls(**{**stored, "figures": StageFigures(**stored["figures"])})


@dataclass(frozen=True, slots=True)
class SinkSpan:
    """Latency of the results at a sink from `begin` to `end`, against the target it had then."""

    begin: float
    end: float
    pipeline: str
    sink: str
    tenant: str
    target_seconds: float | None
    results: float
    in_time: float
    p50: float
    p99: float

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SinkSpan:
        return cls(**stored)
