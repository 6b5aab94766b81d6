from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from penstock import Pipeline, sinks, sources
from penstock.measure.slot_figures import SlotMeasuring
from penstock.measure.turns import TurnRecord
from penstock.queues.segment import Arrivals, Segment, Slice
from penstock.spark.profiles import Profiles
from penstock.spark.slot_meters import SlotMeters
from penstock.spark.turn_input import Portion, TurnInput
from penstock.stages.fuse import cut

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
