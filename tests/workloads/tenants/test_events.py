"""Tables of events: evenly in time, the same again for the same seed."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.workloads.tenants.events import ADS, PAYLOAD_SCHEMA, SCHEMA, AdEvents, event_micros, last_micros

TIMES = st.integers(0, 2_000_000_000)


@given(st.integers(1, 5000), TIMES, st.integers(1, 60))
def test_event_times_ascend_within_their_range_and_lie_evenly(rows: int, begin: int, seconds: int) -> None:
    micros = event_micros(rows, float(begin), float(begin + seconds))
    assert micros[0] == begin * 1_000_000
    assert micros[-1] < (begin + seconds) * 1_000_000
    assert micros[-1] == last_micros(rows, float(begin), float(begin + seconds))
    steps = np.diff(micros)
    assert rows == 1 or steps.max() - steps.min() <= 1


def test_columns_are_those_of_the_schema() -> None:
    table = AdEvents(3).rows(1000, 10.0, 11.0, source=7)
    assert [each.split()[0] for each in SCHEMA.split(", ")] == table.column_names
    assert table.schema.field("at").type == pa.timestamp("us", "UTC")
    assert table["source"].unique().to_pylist() == [7]
    ads = table["ad"].to_numpy()
    assert (ads.min() >= 0, ads.max() < ADS) == (True, True)
    assert len(np.unique(ads // 10)) == 100
    assert set(table["kind"].to_pylist()) == {0, 1, 2}


def test_events_as_text_have_the_same_values() -> None:
    columns, texts = (AdEvents(3, payload=payload).rows(1000, 10.0, 11.0, 7) for payload in (False, True))
    assert [each.split()[0] for each in PAYLOAD_SCHEMA.split(", ")] == texts.column_names
    read = [json.loads(text) for text in texts["payload"].to_pylist()]
    for name in ("ad", "kind", "revenue"):
        assert [each[name] for each in read] == columns[name].to_pylist()
    assert texts["at"].equals(columns["at"])


def test_the_same_calls_give_the_same_rows_and_other_seeds_others() -> None:
    one, again, other = AdEvents(1), AdEvents(1), AdEvents(2)
    for count in (10, 300_000, 7):
        first = one.rows(count, 0.0, 1.0)
        assert first.equals(again.rows(count, 0.0, 1.0))
        assert first.num_rows == count
        assert not first.equals(other.rows(count, 0.0, 1.0))


def test_rows_go_on_where_the_last_ones_ended_and_round_again() -> None:
    events = AdEvents(1, pool=100)
    first, second = events.rows(60, 0.0, 1.0), events.rows(60, 0.0, 1.0)
    whole = AdEvents(1, pool=100).rows(250, 0.0, 1.0)["revenue"].to_pylist()
    assert first["revenue"].to_pylist() + second["revenue"].to_pylist() == whole[:120]
    assert whole[:50] == whole[100:150] == whole[200:]
