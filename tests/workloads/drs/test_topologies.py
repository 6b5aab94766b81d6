"""Emulated pipelines: their stages and slots, what comes in, and that all of it comes out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory

from penstock import sinks, sources
from penstock.errors import PenstockError
from penstock.operators.emulate import emulated
from penstock.stages import cut
from penstock.workloads.drs import ARROW, SCHEMA, TOPOLOGIES, Declared, Finished, Inputs, Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("topology", TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_every_declared_stage_is_a_stage_with_its_slots(topology: Topology, spool: SpoolFactory) -> None:
    waiting = [name for name, each in topology.stages.items() if each.row_seconds > 0.0]
    slots = {name: place + 2 for place, name in enumerate(waiting)}
    source = sources.FromSpool(spool(), SCHEMA)
    pipeline = topology.pipeline(source, sinks.Callback(Finished(1)), slots)
    graph = cut(pipeline)
    own = {stage.name: stage.parallelism for stage in graph.stages if stage.operators}
    assert own == {f"{topology.name}.{name}": slots.get(name, 1) for name in topology.stages}
    assert sorted(emulated(pipeline)) == sorted(waiting)
    for name in waiting:
        assert len(graph.stage(f"{topology.name}.{name}").inputs) == 1, "two queues would double its tasks"


def test_22_slots_keep_up_with_the_highest_frame_rate_of_the_paper() -> None:
    stages = TOPOLOGIES["vld"].stages
    busy = sum(18.0 * each.rows * each.row_seconds for each in stages.values())
    assert 8 < busy < 18


def test_service_can_be_made_bursty_where_it_varies() -> None:
    made = TOPOLOGIES["vld"].with_scv(4.0)
    assert [each.scv for each in made.stages.values()] == [4.0, 4.0, 0.0]
    assert made.stages["match"].row_seconds == TOPOLOGIES["vld"].stages["match"].row_seconds


def test_inputs_come_at_each_rate_in_turn_with_the_gaps_asked_for() -> None:
    inputs = Inputs(((10.0, 100.0), (40.0, 50.0)), "poisson", seed=3)
    arrivals = inputs.arrivals()
    due = np.array([each for each, _ in arrivals])
    assert (due < 100).sum() == pytest.approx(1000, rel=0.1)
    assert (due >= 100).sum() == pytest.approx(2000, rel=0.1)
    assert inputs.seconds == 150.0
    assert [table["input"][0].as_py() for _, table in arrivals] == list(range(len(arrivals)))
    assert all(table.schema == ARROW for _, table in arrivals)
    gaps = np.diff(due[due < 100])
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(1.0, rel=0.2)
    uniform = [b - a for (a, _), (b, _) in pairwise(Inputs(((10.0, 20.0),), "uniform").arrivals())]
    assert 0.05 <= min(uniform) <= max(uniform) <= 0.15
    with pytest.raises(PenstockError, match="inputs must come at positive rates and even, uniform, poisson"):
        Inputs(((0.0, 1.0),))


def test_an_input_is_done_when_all_its_rows_are_there() -> None:
    now = [5.0]
    done = Finished(2, clock=lambda: now[0])
    done(pa.table({"input": [1, 2, 1]}), 0)
    assert done.times == {1: 5.0}
    now[0] = 7.0
    done(pa.table({"input": [2, 1]}), 1)
    assert done.times == {1: 5.0, 2: 7.0}
    assert done.rows() == {1: 3, 2: 2}


@pytest.mark.spark
def test_every_input_is_done_once_through_splits_and_loops(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    runs, ends, source = engine(), {}, spool()
    for name in ("fpd", "two-path"):
        declared = TOPOLOGIES[name].stages
        quick = {stage: Declared(min(each.row_seconds, 0.001)) for stage, each in declared.items()}
        topology = replace(TOPOLOGIES[name], stages=quick)
        ends[name] = Finished(topology.results)
        given = sources.FromSpool(source, SCHEMA), sinks.Callback(ends[name])
        runs.submit(topology.pipeline(*given, {next(iter(topology.stages)): 2}))
    for begin in (0, 20):
        source.append(pa.table({"input": pa.array(range(begin, begin + 20), pa.int64())}))
        runs.drain(120)
    for name, done in ends.items():
        assert done.rows() == dict.fromkeys(range(40), TOPOLOGIES[name].results), name
        assert set(done.times) == set(range(40))
