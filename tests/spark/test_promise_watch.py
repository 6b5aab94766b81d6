"""Targets that cannot be met are said when a pipeline is submitted, and while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import sinks, sources
from penstock.measure.histogram import LatencyHistogram
from penstock.measure.turns import TurnRecord
from penstock.pipeline import Pipeline, Tenant
from penstock.scheduling.contexts import PriorityContext
from penstock.scheduling.stage_view import StageView
from penstock.spark.engine import FLOORS
from penstock.spark.profiles import Profiles
from penstock.spark.promise_watch import PromiseWatch, known_to_be_late
from penstock.stages.fuse import cut

NOW = 1_000.0


def pipeline(latency: str) -> Pipeline:
    made = Pipeline("ads", tenant=Tenant("ads", latency=latency))
    rows = made.source("in", sources.Rate(rows_per_second=10))
    rows.operator("first", lambda frame: frame).operator("second", lambda frame: frame, fuse=False).sink(
        "out", sinks.Callback(lambda table, batch: None)
    )
    return made


def learned(made: Pipeline, seconds: float) -> Profiles:
    """Turns of every stage took so long."""
    profiles = Profiles()
    for stage in cut(made).stages:
        for batch in range(5):
            begun = 10.0 * batch
            record = TurnRecord(
                stage.name, "ads", batch, "direct", 1, begun, begun + seconds, 100, 100, 0.0, 0.0, seconds
            )
            profiles.learn(record, 100)
    return profiles


def test_a_target_shorter_than_the_turns_took_is_said_at_submission() -> None:
    made = pipeline("500ms")
    (told,) = known_to_be_late(made, learned(made, 0.5))
    assert told == (
        "pipeline 'ads': sink 'out': its target of 500 ms cannot be met, as its turns took 1 s when it last "
        "ran: fuse its stages, give them more slots each, or promise 2 s"
    )
    assert known_to_be_late(pipeline("2s"), learned(made, 0.5)) == []
    assert known_to_be_late(made, Profiles()) == [], "nothing is known yet"


def test_targets_that_turns_as_they_are_now_can_meet_are_no_reason_to_warn() -> None:
    assert pipeline("40ms").check(FLOORS) == ()
    (told,) = pipeline("20ms").check(FLOORS)
    assert "below the floor of 30 ms" in told


@dataclass
class Standing:
    """A stage that stands still, as the watch sees it."""

    name: str
    waits: Callable[[float], StageView | None] = lambda now: None
    books: Any = field(default_factory=lambda: SimpleNamespace(slot_seconds=0.0, latency=LatencyHistogram()))

    def view(self, now: float) -> StageView | None:
        return self.waits(now)


def running(made: Pipeline) -> Any:
    graph = cut(made)
    stages = [Standing(stage.name) for stage in graph.stages]
    return SimpleNamespace(pipeline=made, graph=graph, stages=stages)


def since(time: float, deferred: bool = False) -> Callable[[float], StageView]:
    context = PriorityContext("m", 0.0, time, 0.0, time, 0.8, deferred)
    return lambda now: StageView("s", "ads", 10, time, time, context=context)


@pytest.fixture
def watch() -> PromiseWatch:
    return PromiseWatch(lambda: 2, Profiles(), NOW)


def looked(watch: PromiseWatch, run: Any, now: float, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "penstock"):
        watch.look(now, [run])
    return [record.getMessage() for record in caplog.records]


def test_a_missed_target_is_said_once_until_it_is_kept_again(
    watch: PromiseWatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = running(pipeline("800ms"))
    latency = run.stages[-1].books.latency
    latency.add(2.0, 60)
    latency.add(0.1, 40)
    assert looked(watch, run, NOW + 10, caplog) == [], "it looks every 30 s"
    (told,) = looked(watch, run, NOW + 31, caplog)
    assert told.startswith("tenant 'ads' has 40% of its results at sink 'out' within 800 ms: ")
    latency.add(2.0, 100)
    assert looked(watch, run, NOW + 62, caplog) == [], "told already"
    latency.add(0.1, 100)
    assert looked(watch, run, NOW + 93, caplog) == []
    latency.add(2.0, 100)
    assert len(looked(watch, run, NOW + 124, caplog)) == 1, "a new spell"


def test_a_tenant_without_any_result_is_told_of_if_its_work_is_overdue(
    watch: PromiseWatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = running(pipeline("800ms"))
    assert looked(watch, run, NOW + 31, caplog) == [], "nothing came, nothing waits"
    # Rows wait at the first stage; the sink is that of the second.
    run.stages[0].waits = since(NOW + 61.5)
    assert looked(watch, run, NOW + 62, caplog) == [], "they have time left"
    run.stages[0].waits = since(NOW + 63, deferred=True)
    assert looked(watch, run, NOW + 93, caplog) == [], "their window is not complete"
    run.stages[0].waits = since(NOW + 63)
    (told,) = looked(watch, run, NOW + 124, caplog)
    assert told.startswith(
        "tenant 'ads' has work for sink 'out' that waits, 60.2 s beyond its target of 800 ms already, and no "
        "results came of late: "
    )
