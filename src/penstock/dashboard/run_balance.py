"""How evenly the stages of a run were served, over all its minutes: EdgeWise, section 5.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.dashboard.run_record import RunRecord
from penstock.measure.congestion import Congestion, congestion_of
from penstock.measure.stage_meter import StageFigures


def whole(figures: Sequence[StageFigures]) -> StageFigures:
    """The minutes of a stage as one long one."""
    seconds = sum(each.seconds for each in figures)
    rows_in, rows_out = sum(each.rows_in for each in figures), sum(each.rows_out for each in figures)

    def over_time(field: str) -> float:
        return sum(getattr(each, field) * each.seconds for each in figures) / seconds if seconds else 0.0

    def over_rows(field: str) -> float:
        """Of rates: rows over the seconds that they took."""
        rated = [each for each in figures if each.rows_in and getattr(each, field) > 0.0]
        took = sum(each.rows_in / getattr(each, field) for each in rated)
        return sum(each.rows_in for each in rated) / took if took else 0.0

    return replace(
        figures[-1],
        seconds=seconds,
        turns=sum(each.turns for each in figures),
        rows_in=rows_in,
        rows_out=rows_out,
        slot_seconds=sum(each.slot_seconds for each in figures),
        utilisation=over_time("utilisation"),
        arrival_rows_per_second=over_time("arrival_rows_per_second"),
        service_rows_per_second=over_rows("service_rows_per_second"),
        service_rows_per_slot_second=over_rows("service_rows_per_slot_second"),
        selectivity=rows_out / rows_in if rows_in else 0.0,
    )


def balances(run: RunRecord) -> dict[str, Congestion]:
    """The congestion of each pipeline over the whole run; none of what an older version has kept."""
    by: dict[str, dict[str, list[StageFigures]]] = {}
    first = {each.stage for each in run.minutes if each.first}
    for each in run.minutes:
        if each.pipeline:
            by.setdefault(each.pipeline, {}).setdefault(each.stage, []).append(each.figures)
    slots = run.minutes[-1].pool_slots if run.minutes else 0
    return {
        pipeline: congestion_of({name: whole(each) for name, each in stages.items()}, slots, first)
        for pipeline, stages in by.items()
    }
