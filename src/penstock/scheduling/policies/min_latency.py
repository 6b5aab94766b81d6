"""The operators nearest to their sinks first."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.stage_view import StageView


@dataclass(frozen=True, slots=True)
class MinLatency:
    """Runs the stage with the fewest stages below it: rows that have come far are let out first.

    The Min-Latency scheduler of Carney et al. (VLDB 2003) as EdgeWise tells it (USENIX ATC 2019,
    section 3.4). Among stages of one depth, the one that needs the least time for a row of output,
    by its profile, goes first; one that has no profile yet goes before them, to get one.

    >>> def stage(name, depth, seconds, selectivity):
    ...     profile = {"depth": depth, "seconds_per_row": seconds, "selectivity": selectivity}
    ...     return StageView(name, "p", 10, ready_since=10.0, oldest_arrival=10.0, **profile)
    >>> MinLatency().priority(stage("publish", 0, seconds=1.0, selectivity=1.0), now=11.0)
    0.25
    >>> MinLatency().priority(stage("filter", 1, seconds=0.25, selectivity=0.25), now=11.0)
    1.25
    """

    def priority(self, stage: StageView, now: float) -> float:
        if stage.selectivity > 0.0:
            seconds = stage.seconds_per_row / stage.selectivity
            share = seconds / (1.0 + seconds) if seconds < 1e15 else 1.0
        else:
            share = 1.0 if stage.seconds_per_row > 0.0 else 0.0
        # Up to a half: however slow a stage is, it goes before every one with more stages below it.
        return stage.depth + 0.5 * share

    def reason(self, stage: StageView) -> str:
        below = "last in its pipeline" if stage.depth == 0 else f"{stage.depth} below it"
        return f"nearest to its sinks ({below})"
