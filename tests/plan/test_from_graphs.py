"""From declared pipelines and what was measured to what a plan is made for."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, same

from penstock.measure.profiles import StageProfile
from penstock.pipeline import Pipeline
from penstock.plan import PlanStage, Product
from penstock.plan.from_graphs import Costs, workflow_of
from penstock.stages import StageGraph, cut


def profile(selectivity: float = 1.0, turns: int = 10, state: float = 0.0, slots: int = 1) -> StageProfile:
    return StageProfile(0.001, selectivity, 0.05, 0.0005, turns, 0.1, 400, state, slots)


def known(profiles: Mapping[str, StageProfile]) -> Costs:
    return profiles.get


def pipeline() -> Pipeline:
    made = Pipeline("p", fuse=False)
    read = made.source("in", FakeSource()).operator("read", same)
    read.operator("alert", same, parallelism=2).sink("alerts", FakeSink(), latency="500ms")
    read.operator("keep", same, stateful=True, forgets=True, block=15).sink("kept", FakeSink())
    return made


def graph() -> StageGraph:
    return cut(pipeline())


ALL = {"p.read": profile(0.5), "p.alert": profile(slots=3), "p.keep": profile(state=2.0)}


def test_stages_have_their_measured_costs_and_feed_each_other_by_their_selectivity() -> None:
    workflow = workflow_of([graph()], known(ALL), {"p.read": 100.0, "p.keep": 50.0})
    read, alert, keep = workflow.stages
    assert read == PlanStage(
        "p.read", 0.05, 0.0005, rows_per_second=100.0, most_rows=1600, seen_row_seconds=0.001
    )
    # Slots are those that its costs were learned on, not the 2 that it declares.
    assert (alert.above, alert.slots, alert.rows_per_second) == ({"p.read": 0.5}, 3, 0.0)
    assert workflow.rates == pytest.approx((100.0, 50.0, 50.0))
    assert workflow.products == (Product("p.alerts", "p.alert", 0.5),)
    assert (keep.state_seconds, keep.starts, keep.loading_seconds) == (2.0, False, 0.0)


def test_a_declared_block_is_planned_for() -> None:
    keep = workflow_of([graph()], known(ALL), {}).stages[2]
    assert (keep.name, keep.block_rows) == ("p.keep", 15)


def test_a_fused_operator_with_a_block_has_a_stage_of_its_own() -> None:
    made = Pipeline("p")
    read = made.source("in", FakeSource()).operator("read", same).operator("clean", same)
    read.operator("average", same, block=15).operator("round", same).sink("out", FakeSink())
    stages = cut(made).stages
    assert [[each.name for each in stage.operators] for stage in stages] == [
        ["read", "clean"],
        ["average", "round"],
    ]
    assert [stage.block_rows for stage in stages] == [0, 15]


def test_a_stage_that_starts_loads_its_state_first() -> None:
    workflow = workflow_of([graph()], known(ALL), {"p.read": 100.0}, starting={"p.keep"})
    assert [stage.loading_seconds for stage in workflow.stages] == [0.0, 0.0, 2.0]
    settled = workflow.settled
    assert [stage.loading_seconds for stage in settled.stages] == [0.0, 0.0, 0.0]
    assert settled.settled is settled


def test_stages_that_had_few_turns_are_left_out_and_rows_counted_below_them() -> None:
    few = {**ALL, "p.read": profile(turns=2)}
    workflow = workflow_of([graph()], known(few), {"p.read": 100.0, "p.alert": 40.0, "p.keep": 45.0})
    assert [(stage.name, stage.rows_per_second) for stage in workflow.stages] == [
        ("p.alert", 40.0),
        ("p.keep", 45.0),
    ]
    assert workflow_of([graph()], known({}), {"p.read": 100.0}).stages == ()


def test_slots_in_force_and_sinks_without_a_target_can_be_asked_for() -> None:
    workflow = workflow_of([graph()], known(ALL), {}, all_sinks=True, slots={"p.read": 3})
    assert [stage.slots for stage in workflow.stages] == [3, 3, 1]
    assert workflow.products[1] == Product("p.kept", "p.keep", inf)


def test_a_loop_counts_only_where_it_is_asked_for() -> None:
    made = Pipeline("q")
    back = made.loop("again", schema="id LONG")
    step = made.source("in", FakeSource()).union("merge", back).operator("step", same, fuse=False)
    step.operator("done", same, fuse=False).sink("out", FakeSink())
    step.operator("more", same, fuse=False).feed(back)
    graph = cut(made)
    costs = known({stage.name: profile(0.5) for stage in graph.stages})
    with_loops = workflow_of([graph], costs, {"q.merge": 100.0}, loops=True)
    merge = with_loops.stages[0]
    assert merge.loops == {"q.more": 0.5}
    assert workflow_of([graph], costs, {"q.merge": 100.0}).stages[0].loops == {}


def test_a_stage_that_reads_a_source_and_another_stage_has_rows_from_outside() -> None:
    made = Pipeline("p")
    few = made.source("few", FakeSource()).operator("prep", same)
    many = made.source("many", FakeSource())
    many.union("all", few.queue()).operator("both", same).sink("out", FakeSink())
    graph = cut(made)
    costs = known({stage.name: profile(selectivity=0.5) for stage in graph.stages})
    (both,) = [name for name in (stage.name for stage in graph.stages) if name != "p.prep"]
    measured = workflow_of([graph], costs, {"p.prep": 20.0, both: 1010.0})
    assert dict(zip(measured.places, measured.rates, strict=True)) == {"p.prep": 20.0, both: 1010.0}
    declared = workflow_of([graph], costs, {"p.prep": 20.0, both: 1000.0}, loops=True)
    assert dict(zip(declared.places, declared.rates, strict=True)) == {"p.prep": 20.0, both: 1010.0}
