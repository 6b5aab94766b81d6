"""Which of several pipelines runs next, by the deadlines of their rows."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import SCHEMA, Kept, from_spool, raises_when, reading, table

from penstock import Pipeline, Spool, sources
from penstock.pipeline import Tenant
from penstock.scheduling import Grant, TokenShare
from penstock.scheduling.outlook import Waiting
from penstock.spark.running import RunningPipeline

pytestmark = pytest.mark.spark


def passing(name: str, source: Spool, kept: Kept, tenant: Tenant) -> Pipeline:
    """Two stages: a queue between them."""
    pipeline = Pipeline(name, tenant=tenant)
    rows = pipeline.source("readings", sources.FromSpool(source, SCHEMA))
    first = rows.operator("double", lambda frame: frame.selectExpr("id", "value * 2 as value", "ts"))
    second = first.queue().operator("half", lambda frame: frame.selectExpr("id", "value / 2 as value"))
    second.sink("out", kept.sink)
    return pipeline


def granted(runs: object) -> list[str]:
    return [each.stage for each in runs.decisions(n=1000) if isinstance(each, Grant)]  # type: ignore[attr-defined]


def test_the_tighter_target_runs_first_and_its_reason_is_told(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    runs, kept = engine(slots=1), Kept()
    patient, urgent = spool("patient"), spool("urgent")
    runs.submit(passing("patient", patient, kept, Tenant("patient", latency="1h")))
    runs.submit(passing("urgent", urgent, kept, Tenant("urgent", latency="800ms")))
    for name in ("patient", "urgent"):
        runs.pause(name)
    patient.append(table([reading(1, 1.0)]))
    urgent.append(table([reading(2, 1.0)]))
    for name in ("patient", "urgent"):
        runs.resume(name)
    # The first to be resumed runs at once; the urgent one then does not wait for its second stage.
    runs.drain()
    order = granted(runs)
    assert order.index("urgent.half") < order.index("patient.half")
    [reason] = [each.reason for each in runs.decisions("urgent.double") if isinstance(each, Grant)]
    assert "least laxity" in reason
    assert "before a target of 0.8 s" in reason


def test_tenants_are_told_their_results_and_what_they_took(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    runs, kept, source = engine(), Kept(), spool()
    tenant = Tenant("ads", latency="1 minute")
    runs.submit(passing("p", source, kept, tenant))
    for number in range(3):
        source.append(table([reading(number * 10 + k, 1.0) for k in range(10)]))
    runs.drain()
    [report] = runs.tenants()
    assert (report.name, report.latency_seconds, report.results, report.rows_in) == ("ads", 60.0, 30, 30)
    assert report.in_time == 1.0
    assert 0.0 < report.p50 <= report.p99 < 60.0
    assert report.slot_seconds > 0.0


def test_tokens_go_on_with_the_rows_to_later_stages(engine: EngineFactory, spool: SpoolFactory) -> None:
    runs, kept, source = engine(policy=TokenShare(rows_per_second=10.0)), Kept(), spool()
    runs.submit(passing("p", source, kept, Tenant("ads", share=0.5)))
    source.append(table([reading(number, 1.0) for number in range(5)]))
    runs.drain()
    source.append(table([reading(number, 1.0) for number in range(5, 50)]))
    runs.drain()
    assert kept.column("id") == list(range(50))
    reasons = [each.reason for each in runs.decisions("p.half") if isinstance(each, Grant)]
    assert reasons[0].startswith("first token")


def test_work_for_a_window_that_is_not_complete_waits_for_other_work(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    runs, kept = engine(slots=1), Kept()
    windows, others = spool("windows"), spool("others")
    counted = Pipeline("counted")
    rows = counted.source("readings", sources.FromSpool(windows, SCHEMA))
    rows.window("w", on="ts", size="10s", aggregate="count(*) as n").sink("out", kept.sink, latency="800ms")
    runs.submit(counted)
    runs.submit(passing("bulk", others, Kept(), Tenant("bulk", latency="1h")))
    # So that how fast event time goes is known.
    for moment in range(3):
        windows.append(table([reading(moment, moment + 1.0)]))
        runs.drain()
    for name in ("counted", "bulk"):
        runs.pause(name)
    windows.append(table([reading(10, 4.0)]))
    others.append(table([reading(11, 1.0)]))
    before = len(granted(runs))
    runs.resume("bulk")
    runs.resume("counted")
    runs.drain()
    order = granted(runs)[before:]
    assert order.index("bulk.half") < order.index("counted.w")
    windows.append(table([reading(12, 11.0)]))
    eventually(lambda: [row["n"] for row in kept.rows] == [4])


def test_pipelines_of_one_tenant_have_its_share_together(engine: EngineFactory, spool: SpoolFactory) -> None:
    runs, kept, tenant = engine(policy=TokenShare(rows_per_second=10.0)), Kept(), Tenant("ads", share=0.5)

    def submitted(name: str) -> RunningPipeline:
        source = spool(name)
        running = runs.submit(passing(name, source, kept, tenant))
        runs.pause(name)
        source.append(table([reading(number, 1.0) for number in range(5)]))
        return running

    def seconds_of_tokens(running: RunningPipeline) -> float:
        line, now = running.stages[0].line, time.time()
        line.look(now)
        context = line.figures(Waiting(5, now), now, None, 1.0)["context"]
        return float(context.fields["used_until"] - context.pri_global)

    first = submitted("first")
    assert seconds_of_tokens(first) == pytest.approx(1.0)
    second = submitted("second")
    assert [seconds_of_tokens(each) for each in (first, second)] == pytest.approx([2.0, 2.0])
    runs.cancel("first", forget=True)
    assert seconds_of_tokens(second) == pytest.approx(1.0)


def test_a_stage_is_told_what_those_below_it_cost(engine: EngineFactory, spool: SpoolFactory) -> None:
    runs, kept, source = engine(), Kept(), spool()
    running = runs.submit(passing("p", source, kept, Tenant("ads", latency="1 minute")))
    source.append(table([reading(1, 1.0)]))
    runs.drain()
    first, second = running.stages
    below = second.place.profiles.of(second.name)
    assert below is not None
    assert 0.0 < first.line.reply(None).path_seconds == pytest.approx(below.mean_seconds)


def test_a_tenants_share_is_divided_anew_when_one_of_its_pipelines_fails_or_goes_on(
    engine: EngineFactory, spool: SpoolFactory, state: Path, tmp_path: Path
) -> None:
    runs, flag = engine(policy=TokenShare(rows_per_second=10.0)), tmp_path / "flag"
    flag.touch()
    check, tenant, names = raises_when(flag), Tenant("ads", share=0.5), ("first", "second")
    inputs = {name: spool(name) for name in names}
    for name, source in inputs.items():
        pipeline = Pipeline(name, tenant=tenant)
        pipeline.source("readings", from_spool(source)).operator(
            "check", lambda frame: frame.withColumn("id", check("id"))
        ).sink("out", Kept().sink)
        runs.submit(pipeline)

    def shares() -> list[float | None]:
        running = [each for each in runs._all if each.stages]
        return [each.stages[0].line._line._target.share for each in running]

    assert shares() == [0.25, 0.25]
    inputs["first"].append(table([reading(1, 1.0)]))
    eventually(lambda: shares() == [0.5])
    flag.unlink()
    (state / "first" / "resume").touch()
    eventually(lambda: shares() == [0.25, 0.25])
