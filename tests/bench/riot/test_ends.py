"""The source and the sink that both sides share."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.bench.riot.drip import Drip
from penstock.bench.riot.sink_meter import SinkMeter
from penstock.spark.feeders import wait_for


def published(arrived: list[float]) -> pa.Table:
    stamps = pa.array([round(at * 1e6) for at in arrived], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"payload": [f"m{at}" for at in range(len(arrived))], "arrived": stamps})


def test_the_meter_publishes_first_and_tells_how_old_rows_were_then() -> None:
    got: list[str] = []
    meter = SinkMeter(got.extend, clock=lambda: 1000.0)
    meter.take(published([999.0] * 99 + [995.0]), 0)
    latency = meter.between(990.0, 1010.0)
    assert got == [f"m{at}" for at in range(100)]
    assert latency.rows == 100
    assert latency.mean == pytest.approx(1.04)
    assert latency.p99 == pytest.approx(1.0)
    assert meter.between(990.0, 1000.0).rows == 0


def test_a_message_that_could_not_be_published_does_not_count() -> None:
    def away(payloads: object) -> None:
        raise OSError("the broker is away")

    meter = SinkMeter(away)
    with pytest.raises(OSError, match="away"):
        meter.take(published([999.0]), 0)
    assert meter.rows == 0


def test_the_drip_numbers_rows_over_loops_and_stamps_them_with_the_time_they_were_due() -> None:
    got: list[tuple[pa.Table, float]] = []
    drip = Drip(pa.table({"value": ["a", "b", "c"]}), lambda table, due: got.append((table, due)))
    drip.rate = 50
    drip.start()
    assert wait_for(lambda: len(got) >= 3, 5)
    drip.stop()
    rows = pa.concat_tables([table for table, _ in got])
    assert [table.num_rows for table, _ in got[:3]] == [5, 5, 5]
    assert rows["msgid"].to_pylist() == list(range(len(rows)))
    assert rows["value"].to_pylist()[:7] == ["a", "b", "c", "a", "b", "c", "a"]
    table, due = got[0]
    assert table["arrived"][0].as_py().timestamp() == pytest.approx(due, abs=1e-5)
    assert drip.ticks[0] == (due, 5)


def test_source_and_sink_that_keep_nothing_still_count() -> None:
    drip = Drip(pa.table({"value": ["a"]}), lambda table, due: None, keep=False)
    drip.rate = 50
    drip.start()
    assert wait_for(lambda: drip.rows >= 10, 5)
    drip.stop()
    assert drip.ticks == []
    meter = SinkMeter(lambda payloads: None, keep=False)
    meter.take(published([999.0, 998.0]), 0)
    assert meter.rows == 2
    assert meter.between(0.0, 1e12).rows == 0
