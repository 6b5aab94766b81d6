from __future__ import annotations

from datetime import UTC, datetime
from math import inf, isnan

import pyarrow as pa
import pytest

from penstock.bench.batching.meter import Interval, ProductMeter, row_latencies, told, window_latencies

INTERVAL = Interval(10.0, 20.0)


def test_rows_are_matched_in_their_order_and_a_missing_one_is_late_for_ever() -> None:
    assert row_latencies([10.0, 11.0, 12.0], [(10.5, 1), (13.0, 1)]) == [
        (10.0, 0.5),
        (11.0, 2.0),
        (12.0, inf),
    ]


def test_windows_are_matched_by_their_end() -> None:
    assert window_latencies({15.0: 15.1, 20.0: 20.1}, {15.0: 15.6}) == [
        (15.1, pytest.approx(0.5)),
        (20.1, inf),
    ]


def test_what_is_due_before_the_interval_or_not_due_yet_does_not_count() -> None:
    latencies = [(9.0, 5.0), (11.0, 0.4), (12.0, 1.5), (13.0, inf), (19.5, inf)]
    assert INTERVAL.share_in_time(latencies, 1.0) == pytest.approx(1 / 3)
    assert isnan(INTERVAL.share_in_time(latencies, 30.0))
    figures = told(latencies, INTERVAL, 1.0)
    assert (figures["results"], figures["p50"], figures["p99"]) == (4, 1e6, 1e6)


def test_a_sink_counts_rows_and_keeps_when_the_first_of_a_window_came() -> None:
    now = [100.0]
    meter = ProductMeter(lambda: now[0])
    start, end = datetime(2020, 1, 6, 9, tzinfo=UTC), datetime(2020, 1, 6, 9, 0, 5, tzinfo=UTC)
    kind = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])
    table = pa.table({"window": pa.array([{"start": start, "end": end}] * 3, kind)})
    meter.take(table)
    now[0] = 101.0
    meter.take(table)
    assert meter.counts == [(100.0, 3), (101.0, 3)]
    assert meter.windows == {end.timestamp(): 100.0}
