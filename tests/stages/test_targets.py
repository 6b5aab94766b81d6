"""A target that changes while a pipeline runs."""

from __future__ import annotations

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, same

from penstock.pipeline import Pipeline
from penstock.stages import StageGraph, cut
from penstock.stages.targets import with_target


@pytest.fixture
def graph() -> StageGraph:
    p = Pipeline("alerts")
    parsed = p.source("readings", FakeSource()).operator("parse", same).queue()
    parsed.sink("archive", FakeSink())
    parsed.operator("alarm", same).sink("out", FakeSink(), latency="800ms")
    return cut(p)


def targets(graph: StageGraph) -> dict[str, float | None]:
    return {stage.name: stage.latency_seconds for stage in graph.stages}


def test_a_new_target_at_a_sink_counts_for_all_stages_above_it(graph: StageGraph) -> None:
    assert targets(graph) == {"alerts.parse": 0.8, "alerts.archive": None, "alerts.alarm": 0.8}
    changed = with_target(graph, "out", 0.5)
    assert targets(changed) == {"alerts.parse": 0.5, "alerts.archive": None, "alerts.alarm": 0.5}
    alarm = changed.stage("alerts.alarm")
    assert alarm.sink is not None
    assert alarm.sink.latency_seconds == 0.5
    assert targets(graph)["alerts.parse"] == 0.8


def test_the_least_target_below_a_stage_counts(graph: StageGraph) -> None:
    changed = with_target(with_target(graph, "archive", 0.6), "out", 2.0)
    assert targets(changed) == {"alerts.parse": 0.6, "alerts.archive": 0.6, "alerts.alarm": 2.0}


def test_a_sink_that_is_not_there_is_refused(graph: StageGraph) -> None:
    with pytest.raises(KeyError, match="nowhere"):
        with_target(graph, "nowhere", 1.0)
