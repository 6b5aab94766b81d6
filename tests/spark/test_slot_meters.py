from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from penstock import Pipeline, sinks, sources
from penstock.measure.slot_figures import SlotMeasuring
from penstock.measure.turns import TurnRecord
from penstock.plan.slot_models import visits_of
from penstock.queues.segment import Arrivals, Segment, Slice
from penstock.spark.profiles import Profiles
from penstock.spark.slot_meters import MOST_IN_LOOPS, SlotMeters
from penstock.spark.turn_input import Portion, TurnInput
from penstock.stages.fuse import cut
from penstock.stages.stage import StageGraph

NOWHERE = sinks.Callback(lambda table, batch: None)


def segment(queue_place: int, rows: int, at: float, producer: str = "feeder", batch: int = 0) -> Segment:
    return Segment(queue_place, producer, batch, (), (), rows, Arrivals.at(at, rows), at)


def whole(queue: str, taken: Segment) -> TurnInput:
    piece = Slice(taken, 0, taken.rows, (), (), taken.arrivals)
    return TurnInput((Portion.of(piece, queue),))


def stages(*names: str) -> list[Any]:
    place = SimpleNamespace(profiles=Profiles())
    return [SimpleNamespace(name=name, slots=1, place=place) for name in names]


def turn(stage: str, rows: int, begun: float, ended: float) -> TurnRecord:
    return TurnRecord(stage, "p", 0, "direct", 1, begun, ended, rows, rows, 0.0, 0.0, ended - begun)


def test_an_input_is_followed_from_its_queue_to_the_sink_by_the_turns_that_took_it() -> None:
    pipeline = Pipeline("p", fuse=False)
    read = pipeline.source("in", sources.Replay([{"id": 1}], 1)).operator("a", lambda rows: rows)
    read.operator("b", lambda rows: rows).sink("out", NOWHERE)
    graph = cut(pipeline)
    meters = SlotMeters(graph, 0.0, SlotMeasuring(10.0))
    first, second = graph.stage("p.a"), graph.stage("p.b")
    came = segment(7, 5, 1.0)
    meters.arrived("p.a", first.inputs[0], came)
    meters.passed("p.a", whole(first.inputs[0], came), 3, 5, 2.0)
    meters.ended(turn("p.a", 5, 1.5, 2.0))
    between = segment(0, 5, 2.0, "p.a", 3)
    meters.arrived("p.b", second.inputs[0], between)
    meters.passed("p.b", whole(second.inputs[0], between), 9, 5, 4.0)
    meters.ended(turn("p.b", 5, 2.0, 4.0))
    assert meters.look(9.0, stages("p.a", "p.b")) is None
    figures = meters.look(10.0, stages("p.a", "p.b"))
    assert figures is not None
    assert figures.outside_rows_per_second == 0.5
    assert (figures.inputs.inputs_done, figures.inputs.mean_seconds) == (1, 3.0)
    assert figures.stages["p.b"].moments.slot_rows_per_second == 2.5
    assert figures.stages["p.b"].turns_per_input == 1.0


def test_rows_that_spark_reads_itself_are_an_input_of_the_turn_that_took_them() -> None:
    pipeline = Pipeline("p", fuse=False)
    pipeline.source("ticks", sources.Rate(5)).operator("a", lambda rows: rows).sink("out", NOWHERE)
    graph = cut(pipeline)
    meters = SlotMeters(graph, 0.0, SlotMeasuring(10.0))
    names = [stage.name for stage in graph.stages]
    for number in range(4):
        at = float(number)
        took = TurnInput((Portion(5, Arrivals.at(at, 5), at),))
        meters.passed(names[0], took, number, 0, at + 0.5)
    figures = meters.look(10.0, stages(*names))
    assert figures is not None
    assert figures.outside_rows_per_second == 2.0
    assert (figures.inputs.inputs_done, figures.inputs.mean_seconds) == (4, 0.5)


def two_sources() -> StageGraph:
    """Many readings and few settings, each worked on, and both at a join."""
    pipeline = Pipeline("p", fuse=False)
    many = pipeline.source("many", sources.Replay([{"id": 1}], 1)).operator("a", lambda rows: rows)
    few = pipeline.source("few", sources.Replay([{"id": 1}], 1)).operator("b", lambda rows: rows)
    many.union("join", few).sink("out", NOWHERE)
    return cut(pipeline)


def test_each_source_has_a_rate_of_its_own() -> None:
    graph = two_sources()
    meters = SlotMeters(graph, 0.0, SlotMeasuring(10.0))
    for stage, batches in (("p.a", 100), ("p.b", 1)):
        queue = graph.stage(stage).inputs[0]
        for number in range(batches):
            came = segment(number, 10, 0.1 * number)
            meters.arrived(stage, queue, came)
            meters.passed(stage, whole(queue, came), number, 10, 0.1 * number + 0.05)
            between = segment(number, 10, 0.1 * number + 0.05, stage, number)
            read = graph.stage(stage).output
            assert read is not None
            meters.arrived("p.join", read, between)
            meters.passed("p.join", whole(read, between), number, 10, 0.1 * number + 0.1)
    figures = meters.look(10.0, stages("p.a", "p.b", "p.join"))
    assert figures is not None
    assert figures.outside_rows_per_second == 101.0
    assert figures.sources == {"@p.many": 100.0, "@p.few": 1.0}
    assert figures.rows_made["p.b"] == {"@p.few": 1.0}
    assert visits_of(figures) == {"p.a": 100 / 101, "p.b": 1 / 101, "p.join": 1.0}


def one_stage() -> tuple[StageGraph, str]:
    pipeline = Pipeline("p", fuse=False)
    pipeline.source("in", sources.Replay([{"id": 1}], 1)).operator("a", lambda rows: rows).sink(
        "out", NOWHERE
    )
    graph = cut(pipeline)
    return graph, graph.stage("p.a").inputs[0]


def test_the_spread_of_inputs_is_that_of_late() -> None:
    graph, queue = one_stage()
    meters = SlotMeters(graph, 0.0, SlotMeasuring(10.0))
    # In pairs at first, then one a second.
    times = [at + late for at in range(0, 10, 2) for late in (0.5, 0.6)]
    times += [10.5 + number for number in range(40)]
    found = []
    for number, at in enumerate(times):
        if at > 10.0 * (len(found) + 1):
            figures = meters.look(10.0 * (len(found) + 1), stages("p.a"))
            assert figures is not None
            found.append(figures.input_scv)
        meters.arrived("p.a", queue, segment(number, 1, at))
    assert found[0] > 0.5
    assert found[-1] < 0.05


def test_rows_of_a_source_that_another_stage_has_told_of_before_are_counted_when_they_are() -> None:
    pipeline = Pipeline("p", fuse=False)
    read = pipeline.source("in", sources.Replay([{"id": 1}], 1))
    for name in ("a", "b"):
        read.operator(name, lambda rows: rows).sink(f"out_{name}", NOWHERE)
    graph = cut(pipeline)
    meters = SlotMeters(graph, 0.0, SlotMeasuring(10.0))
    queue, came = graph.stage("p.a").inputs[0], segment(0, 5, 9.0)
    meters.arrived("p.b", queue, came)
    first = meters.look(10.0, stages("p.a", "p.b"))
    meters.arrived("p.a", queue, came)
    second = meters.look(20.0, stages("p.a", "p.b"))
    assert first is not None
    assert second is not None
    assert (first.outside_rows_per_second, first.inputs.inputs_per_second) == (0.0, 0.0)
    assert (second.rows_per_input, second.inputs.inputs_per_second) == (5.0, 0.1)


def test_in_a_loop_that_always_has_rows_no_turn_has_ever_more_inputs_to_go_through() -> None:
    pipeline = Pipeline("p", fuse=False)
    again = pipeline.loop("again", "id BIGINT")
    read = pipeline.source("in", sources.Replay([{"id": 1}], 1)).operator("first", lambda rows: rows)
    on = read.union("rounds", again).operator("on", lambda rows: rows)
    on.feed("again")
    on.sink("out", NOWHERE)
    graph = cut(pipeline)
    meters = SlotMeters(graph, 0.0, SlotMeasuring(10.0))
    queue = graph.stage("p.first").inputs[0]
    for number in range(1000):
        at = 0.05 * number
        came = segment(number, 1, at)
        meters.arrived("p.first", queue, came)
        meters.passed("p.first", whole(queue, came), number, 1, at)
    figures = meters.look(60.0, stages(*(each.name for each in graph.stages)))
    assert figures is not None
    assert figures.inputs.inputs_open == MOST_IN_LOOPS
    assert figures.inputs.inputs_per_second == 1000 / 60
