from __future__ import annotations

import time

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import Kept, Turns, from_spool, reading, readings, table

from penstock import Pipeline
from penstock.queues.segment import Arrivals

pytestmark = pytest.mark.spark
ROWS = readings(100, seconds=30)


def test_each_row_at_a_sink_has_the_latency_since_its_arrival_at_the_source(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, one, two, runs = spool(), Kept(), Kept(), engine()
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source)).operator("same", lambda frame: frame)
    stream.sink("all", one.sink, latency="60s")
    stream.operator("half", lambda frame: frame.filter("id % 2 = 0")).sink("some", two.sink, latency="1s")
    runs.submit(pipeline)
    began = time.time()
    # They arrived 5 s ago at a source far away: through two stages, that still counts.
    source.append(table(ROWS), arrivals=Arrivals.at(began - 5, 100))
    runs.drain()
    took = time.time() - began
    reports = {report.sink: report for report in runs.sinks()}
    assert {name: report.latency.count for name, report in reports.items()} == {"all": 100, "some": 50}
    for report in reports.values():
        assert 5 < report.latency.least <= report.latency.greatest <= 5 + took
    assert (reports["all"].share_in_time, reports["some"].share_in_time) == (1.0, 0.0)
    assert (reports["all"].target_seconds, reports["some"].target_seconds) == (60.0, 1.0)


def test_the_three_times_of_a_single_segment_add_up_to_its_time_at_the_stage(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, turns, runs = spool(), Kept(), Turns(), engine()
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator("same", lambda frame: frame).sink(
        "out", kept.sink
    )
    runs.submit(pipeline)
    runs.on_turn(turns)
    published = []
    for start in (0, 40):
        published.append(source.append(table(ROWS[start : start + 40])).published)
        runs.drain()
    records = turns.of("p.same")
    assert len(records) == 2
    for record, came in zip(records, published, strict=True):
        times = (record.queue_seconds, record.schedule_seconds, record.compute_seconds)
        assert min(times) >= 0
        assert record.compute_seconds > 0
        assert sum(times) == pytest.approx(record.finished_at - came, abs=1e-6)
        assert record.compute_seconds == pytest.approx(record.finished_at - record.granted_at, abs=1e-6)
        # It came when no turn ran, so it never queued behind one.
        assert record.queue_seconds == 0
    assert records[1].rows_out == 40


def test_rows_that_come_while_a_turn_runs_have_queued_until_its_end(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, turns, runs = spool(), Turns(), engine()
    published: list[float] = []

    def add_more(rows: object, batch: int) -> None:
        if batch == 0:
            published.append(source.append(table(ROWS[50:])).published)

    from penstock import sinks

    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).sink("out", sinks.Callback(add_more))
    runs.submit(pipeline)
    runs.on_turn(turns)
    source.append(table(ROWS[:50]))
    runs.drain()
    first, second = turns.of("p.out")
    assert second.queue_seconds == pytest.approx(first.finished_at - published[0], abs=1e-6)
    assert second.queue_seconds > 0
    assert second.schedule_seconds == pytest.approx(second.granted_at - first.finished_at, abs=1e-6)


def test_a_windows_latency_counts_from_the_event_that_completed_it(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).window(
        "w", on="ts", size="10s", by="sensor", aggregate="count(*) as n"
    ).sink("out", kept.sink)
    runs.submit(pipeline)
    began = time.time()
    source.append(table([reading(1, 1.0), reading(2, 2.0, "b")]), arrivals=Arrivals.at(began - 900, 2))
    runs.drain()
    source.append(table([reading(3, 11.0)]), arrivals=Arrivals.at(began - 20, 1))
    runs.drain()
    [report] = runs.sinks()
    assert report.latency.count == 2 == len(kept.rows)
    assert 20 < report.latency.least <= report.latency.greatest <= 20 + time.time() - began


def test_a_windows_latency_counts_so_even_when_a_turn_without_rows_brought_it_out(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    """The first turn of a query completes two windows, and the flush after it gives them out."""
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).window(
        "w", on="ts", size="10s", by="sensor", aggregate="count(*) as n"
    ).sink("out", kept.sink)
    began = time.time()
    source.append(
        table([reading(1, 1.0), reading(2, 12.0), reading(3, 21.0)]), arrivals=Arrivals.at(began - 20, 3)
    )
    runs.submit(pipeline)
    runs.drain()
    [report] = runs.sinks()
    assert report.latency.count == 2 == len(kept.rows)
    assert 20 < report.latency.least <= report.latency.greatest <= 20 + time.time() - began


def test_a_stages_figures_count_its_turns_and_rows(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, runs = spool(), Kept(), engine(consumption="at-most-30")
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator(
        "half", lambda frame: frame.filter("id % 2 = 0")
    ).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(table(ROWS))
    runs.drain()
    [report] = runs.stages()
    figures = report.figures
    assert (figures.total_turns, figures.total_rows_in, figures.total_rows_out) == (4, 100, 50)
    assert figures.compute_seconds > 0


def test_a_listener_that_fails_is_detached_and_the_pipeline_goes_on(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, turns, runs = spool(), Kept(), Turns(), engine(consumption="at-most-50")
    called = []

    def fails(record: object) -> None:
        called.append(record)
        raise RuntimeError("no")

    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).sink("out", kept.sink)
    runs.submit(pipeline)
    runs.on_turn(fails)
    runs.on_turn(turns)
    source.append(table(ROWS))
    runs.drain()
    assert (len(called), len(turns.of("p.out"))) == (1, 2)
    assert kept.column("id") == list(range(100))
