"""What managers see of a stage, from the figures that an engine has of it."""

from __future__ import annotations

from penstock.measure.profiles import StageProfile
from penstock.measure.stage_meter import StageFigures
from penstock.plan.elastic import StageSeen

MOST_BUSY = 0.9
"""The share of time with rows there, up to which a turn ends before the next rows come."""


def stage_seen(figures: StageFigures, slots: int, profile: StageProfile | None) -> StageSeen:
    """With the same share for each replica: the time its turns had of their slots.

    A model needs costs, which are known after some turns. They were learned with the slots of now: a row
    then takes `slots` times as long of one slot.
    """
    busy = figures.slot_seconds / (figures.seconds * slots) if figures.seconds > 0.0 else 0.0
    shares = (min(busy, 1.0),) * slots
    if profile is None or not profile.trusted:
        return StageSeen(shares, figures.arrival_rows_per_second)
    return StageSeen(
        shares,
        figures.arrival_rows_per_second,
        row_seconds=profile.row_seconds * slots,
        fixed_seconds=profile.fixed_seconds,
        segment_seconds=_segment_seconds(figures),
    )


def _segment_seconds(figures: StageFigures) -> float:
    """A stage that has time to spare has a turn for each segment; 0 where it has none."""
    if not figures.turns or figures.utilisation > MOST_BUSY:
        return 0.0
    return figures.seconds / figures.turns
