from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.queues.parquet import Footer, encode, event_ranges, merge_ranges, read_footer, read_rows

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def times() -> pa.Table:
    return pa.table(
        {
            "instant": pa.array([NOON, None, NOON.replace(hour=13)], pa.timestamp("ns", tz="Europe/Paris")),
            "plain": pa.array([1_500, 2_500, 500], pa.timestamp("ms")),
            "never": pa.array([None] * 3, pa.timestamp("us")),
            "number": [1, 2, 3],
        }
    )


EXPECTED = {"instant": (NOON.timestamp(), NOON.timestamp() + 3600), "plain": (0.5, 2.5)}


def test_event_ranges_skip_columns_without_times() -> None:
    assert event_ranges(times()) == EXPECTED
    assert event_ranges(times().slice(0, 0)) == {}


def test_timestamps_become_microseconds_and_keep_whether_they_are_instants(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(encode(times()))
    schema = pq.read_schema(tmp_path / "f")
    assert schema.field("instant").type == pa.timestamp("us", tz="UTC")
    assert schema.field("plain").type == pa.timestamp("us")


def test_a_footer_tells_the_same_as_the_table(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(encode(times()))
    assert read_footer(tmp_path / "f") == Footer(3, EXPECTED)


def test_a_row_group_of_nulls_does_not_hide_the_others(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([None, None, 1_000_000, 3_000_000], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "f", row_group_size=2)
    assert read_footer(tmp_path / "f") == Footer(4, {"ts": (1.0, 3.0)})


def test_a_column_without_statistics_has_no_range(tmp_path: Path) -> None:
    pq.write_table(times(), tmp_path / "f", write_statistics=["plain"])
    assert read_footer(tmp_path / "f") == Footer(3, {"plain": (0.5, 2.5)})


def test_ranges_over_files_need_every_file() -> None:
    parts = [Footer(1, {"a": (1.0, 2.0), "b": (0.0, 0.0)}), Footer(1, {"a": (0.0, 1.5)})]
    assert merge_ranges(parts) == {"a": (0.0, 2.0)}


@pytest.mark.parametrize(("start", "rows"), [(0, 3), (5, 1), (8, 4), (9, 20), (0, 30)])
def test_rows_are_read_across_row_groups(tmp_path: Path, start: int, rows: int) -> None:
    pq.write_table(pa.table({"id": list(range(30))}), tmp_path / "f", row_group_size=10)
    assert read_rows(tmp_path / "f", start, rows)["id"].to_pylist() == list(range(30))[start : start + rows]


def test_int96_times_stay_instants_when_cut_and_plain_ones_stay_plain(tmp_path: Path) -> None:
    nested = pa.array([{"start": NOON}, {"start": NOON}], pa.struct([("start", pa.timestamp("us"))]))
    table = pa.table({"number": [1, 2], "ts": pa.array([NOON, NOON], pa.timestamp("us")), "window": nested})
    pq.write_table(table, tmp_path / "f", use_deprecated_int96_timestamps=True)
    cut = read_rows(tmp_path / "f", 1, 1)
    assert cut.schema.field("ts").type == pa.timestamp("us", tz="UTC")
    assert cut["window"].to_pylist() == [{"start": NOON}]
    assert cut["ts"].to_pylist() == [NOON]
