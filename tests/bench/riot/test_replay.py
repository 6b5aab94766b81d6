"""Figures from what was fed in and the turns that ran, against times worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Pipeline, Spool, sinks, sources
from penstock.bench.riot.replay import backlogs, figures_of
from penstock.measure.turns import TurnRecord
from penstock.stages.fuse import cut
from penstock.stages.stage import StageGraph


@pytest.fixture
def graph(tmp_path: Path) -> StageGraph:
    pipeline = Pipeline("p", fuse=False)
    with Spool(tmp_path / "in") as spool:
        source = pipeline.source("in", sources.FromSpool(spool, "value STRING"))
        middle = source.operator("first", lambda rows: rows).operator("second", lambda rows: rows)
        middle.sink("out", sinks.Console())
    return cut(pipeline)


def turn(stage: str, batch: int, begin: float, end: float, rows: int, slots: int = 1) -> TurnRecord:
    return TurnRecord(stage, "p", batch, "direct", slots, begin, end, rows, rows, 0.0, 0.0, 0.0)


def test_times_utilisation_and_rates_are_those_of_the_turns(graph: StageGraph) -> None:
    ticks = [(0.0, 10), (1.0, 10)]
    turns = [
        turn("p.first", 0, 0.5, 2.0, 10),  # the second ten come meanwhile
        turn("p.first", 1, 3.0, 4.0, 10),
        turn("p.second", 0, 4.5, 5.0, 20),
    ]
    figures = figures_of(graph, ticks, turns, begin=0.0, end=10.0)
    first, second = figures["p.first"], figures["p.second"]
    # Ten rows: T_S 0.5, T_C 1.5. Ten rows: T_Q 1 (from 1 to 2), T_S 1 (from 2 to 3), T_C 1.
    assert first.queue_seconds == pytest.approx(0.5)
    assert first.schedule_seconds == pytest.approx(0.75)
    assert first.compute_seconds == pytest.approx(1.25)
    assert first.utilisation == pytest.approx(0.4, abs=0.02)
    assert first.arrival_rows_per_second == pytest.approx(2.0)
    assert first.service_rows_per_second == pytest.approx(20 / 2.5)
    # Ten rows wait from 2.0, ten from 4.0; the turn ends at 5.0.
    assert second.schedule_seconds == pytest.approx((2.5 + 0.5) / 2)
    assert second.utilisation == pytest.approx(0.3, abs=0.02)


def test_only_what_happened_in_the_interval_counts(graph: StageGraph) -> None:
    ticks = [(0.0, 10), (20.0, 30)]
    turns = [turn("p.first", 0, 0.0, 5.0, 10), turn("p.first", 1, 20.0, 21.0, 30)]
    figures = figures_of(graph, ticks, turns, begin=15.0, end=25.0)
    assert figures["p.first"].rows_in == 30
    assert figures["p.first"].turns == 1
    assert figures["p.second"].rows_waiting == 40


def test_a_turn_that_takes_part_of_what_waits_leaves_the_rest(graph: StageGraph) -> None:
    figures = figures_of(graph, [(0.0, 10)], [turn("p.first", 0, 1.0, 2.0, 4)], begin=0.0, end=4.0)
    assert figures["p.first"].rows_waiting == 6
    assert figures["p.first"].utilisation == pytest.approx(1.0)


def test_rows_that_a_turn_took_though_they_came_after_it_began_do_not_wait_on(graph: StageGraph) -> None:
    turns = [turn("p.first", 0, 1.0, 2.0, 30), turn("p.first", 1, 3.0, 4.0, 10)]
    figures = figures_of(graph, [(0.5, 10), (1.2, 20), (2.5, 10)], turns, begin=0.0, end=5.0)
    assert figures["p.first"].rows_waiting == 0
    # Ten rows have T_S 0.5 before the first turn, ten before the second; twenty have T_C only.
    assert figures["p.first"].schedule_seconds == pytest.approx((10 * 0.5 + 10 * 0.5) / 40)
    assert figures["p.first"].queue_seconds == 0.0


def test_a_turn_occupies_as_many_slots_as_it_has_tasks(graph: StageGraph) -> None:
    figures = figures_of(graph, [(0.0, 10)], [turn("p.first", 0, 1.0, 3.0, 10, slots=2)], begin=0.0, end=4.0)
    assert figures["p.first"].slot_seconds == pytest.approx(4.0)
    assert figures["p.first"].service_rows_per_slot_second == pytest.approx(2.5)


def test_what_waits_is_told_for_the_first_and_the_last_third(graph: StageGraph) -> None:
    ticks = [(float(at), 10) for at in range(9)]
    # The first stage takes all that came, at every full second and half; nobody reads what it gives.
    turns = [turn("p.first", at, at + 0.5, at + 0.75, 10) for at in range(9)]
    waiting = backlogs(graph, ticks, turns, begin=0.0, end=9.0)
    assert waiting["p.first"] == pytest.approx((5.0, 5.0))
    # Ten at 0.75, twenty at 1.75, thirty at 2.75; then seventy from 6.75 on.
    assert waiting["p.second"] == pytest.approx(
        ((10 + 20 + 30 * 0.25) / 3, (60 * 0.75 + 70 + 80 + 90 * 0.25) / 3)
    )


def test_a_queue_is_not_negative_where_a_turn_counts_rows_that_come_during_it(graph: StageGraph) -> None:
    waiting = backlogs(graph, [(2.0, 10)], [turn("p.first", 0, 1.0, 2.5, 10)], begin=0.0, end=3.0)
    assert waiting["p.first"] == (0.0, 0.0)
