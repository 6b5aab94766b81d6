"""For how long stages with rows have not moved, and brokers have been away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.dashboard.snapshot import StageNow
from penstock.dashboard.watched import Watched
from penstock.measure.alerts import STUCK_SECONDS, AwaySeen, StageSeen
from penstock.measure.profiles import Profiler

PATIENCE_SECONDS = 60.0
"""A stage that stands in line has reasons to wait for so long, or twice its target."""


@dataclass
class Stillness:
    """Remembers when each stage was last seen to move."""

    _moved: dict[str, tuple[int, float]] = field(default_factory=dict)

    def look(
        self, now: float, stages: Iterable[StageNow], states: Mapping[str, str], engine: Watched
    ) -> list[StageSeen]:
        """Each stage with how long it stands."""
        moved, found = {}, []
        for stage in stages:
            turns, at = self._moved.get(stage.name, (-1, now))
            may_run = states.get(stage.pipeline) == "running" and stage.has_room
            moves = turns != stage.turns or not stage.rows_waiting or stage.turn_since is not None
            if moves or not may_run:
                at = now
            moved[stage.name] = stage.turns, at
            found.append(_seen(stage, now, at, may_run, engine))
        self._moved = moved
        return found


def _seen(stage: StageNow, now: float, moved_at: float, may_run: bool, engine: Watched) -> StageSeen:
    # The first turns since the start are cold, whatever an earlier run has learned.
    profile = engine.profile(stage.name) if stage.turns >= Profiler.TRUSTED_TURNS else None
    still = now - moved_at
    return StageSeen(
        name=stage.name,
        rows_waiting=stage.rows_waiting,
        still_seconds=still,
        turn_seconds=None if stage.turn_since is None else max(now - stage.turn_since, 0.0),
        usual_seconds=None if profile is None else profile.mean_seconds,
        may_run=may_run,
        waits_on_purpose=still > STUCK_SECONDS and _on_purpose(stage, still, engine),
        target_seconds=stage.target_seconds,
    )


def _on_purpose(stage: StageNow, still: float, engine: Watched) -> bool:
    """Whether the scheduler knows that it waits, and lets others go before it or its batch fill."""
    return still <= max(PATIENCE_SECONDS, 2 * (stage.target_seconds or 0.0)) and stage.name in engine.in_line


@dataclass
class Absence:
    """Remembers since when each broker was seen to be away."""

    _since: dict[str, float] = field(default_factory=dict)

    def look(self, now: float, away: Iterable[str]) -> list[AwaySeen]:
        """Those away, by what needs them, each with how long it has been."""
        self._since = {name: self._since.get(name, now) for name in away}
        return [AwaySeen(name, now - since) for name, since in self._since.items()]
