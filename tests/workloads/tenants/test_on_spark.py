"""IPQ1 to IPQ4 through the engine and as plain streaming queries, against the batch computation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import Kept

from penstock import sources
from penstock.workloads.tenants import (
    FRAMES,
    PAYLOAD_SCHEMA,
    QUERIES,
    SCHEMA,
    AdEvents,
    Job,
    Message,
    bulk_jobs,
    completed_at,
    expected,
    in_ticks,
    ipq3,
    messages_of,
    urgent_jobs,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
BASE = 1_700_000_000.0
SECONDS = 6.0


def job_of(query: str) -> Job:
    return replace(urgent_jobs(1, query=query)[0], sources=4, rows_per_second=2000.0)


def tables(job: Job, messages: list[Message]) -> list[tuple[Message, pa.Table]]:
    events = AdEvents(job.seed, job.events_drawn, payload=job.payload)
    return [
        (each, events.rows(each.rows, BASE + each.begin, BASE + each.end, each.source)) for each in messages
    ]


def closed(job: Job, messages: list[Message], until: float | None = None) -> dict[float, float]:
    """The values of the windows that are complete, or that lie before `until`."""
    ends = completed_at(messages, job.window_seconds, job.slide_seconds, BASE)
    values = expected(job, messages, BASE)
    return {end: value for end, value in values.items() if (end in ends if until is None else end <= until)}


def by_end(rows: list[dict[str, Any]]) -> dict[float, float]:
    assert len({row["at"] for row in rows}) == len(rows)
    return {row["at"].timestamp(): row["value"] for row in rows}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("fused", [False, True])
def test_each_query_gives_the_values_of_the_batch_computation(
    engine: EngineFactory, spool: SpoolFactory, query: str, fused: bool
) -> None:
    source, kept, runs, job = spool(), Kept(), engine(policy="fifo"), job_of(query)
    messages = in_ticks(messages_of(job, SECONDS))
    read = sources.FromSpool(source, SCHEMA, sources=job.sources, idle_seconds=600.0)
    runs.submit(QUERIES[query](read, kept.sink, window=job.window_seconds, tenant=job.name, fused=fused))
    assert len(runs.stages()) == (1 if fused else 2)
    for place, (message, rows) in enumerate(tables(job, messages)):
        source.append(rows, producer=f"s{message.source}")
        if place % 6 == 5:
            runs.drain()
    runs.drain()
    assert by_end(kept.rows) == pytest.approx(closed(job, messages))
    assert sum(report.late_rows for report in runs.stages()) == 0
    if query == "ipq3":
        assert {row["campaigns"] for row in kept.rows[1:]} == {100}


@pytest.mark.parametrize("fused", [False, True])
def test_events_that_come_as_text_give_the_same_values(
    engine: EngineFactory, spool: SpoolFactory, fused: bool
) -> None:
    source, kept, runs = spool(), Kept(), engine(policy="fifo")
    job = replace(bulk_jobs(2000.0, 1)[0], window_seconds=2.0)
    messages = in_ticks(messages_of(job, SECONDS))
    read = sources.FromSpool(source, PAYLOAD_SCHEMA, sources=job.sources, idle_seconds=600.0)
    runs.submit(ipq3(read, kept.sink, window=2.0, tenant=job.name, fused=fused, payload=True))
    for message, rows in tables(job, messages):
        source.append(rows, producer=f"s{message.source}")
    runs.drain()
    assert by_end(kept.rows) == pytest.approx(closed(job, messages))


Frame = Callable[..., "DataFrame"]


@pytest.mark.parametrize(("query", "frame"), FRAMES.items())
def test_each_query_gives_the_same_as_a_plain_streaming_query(
    spark: SparkSession, tmp_path: Path, query: str, frame: Frame
) -> None:
    job, kept = job_of(query), Kept()
    messages = in_ticks(messages_of(job, SECONDS))
    folder = tmp_path / "input"
    folder.mkdir()
    made = tables(job, messages)
    for number in range(0, len(made), 6):
        together = pa.concat_tables([rows for _, rows in made[number : number + 6]])
        pq.write_table(together, folder / f"{number:05d}.parquet", coerce_timestamps="us")
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    rows = frame(reader.parquet(str(folder)).coalesce(1), job.window_seconds, 1.0)
    writer = rows.writeStream.foreachBatch(lambda batch, number: kept(batch.toArrow(), number))
    query_run = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query_run.awaitTermination(120)
    assert query_run.exception() is None
    assert by_end(kept.rows) == pytest.approx(closed(job, messages, BASE + SECONDS - 1.126))
