"""Where the rows of a turn are written: by the driver, or by Spark's tasks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory

from penstock import Pipeline, sinks, sources
from penstock.spark.results import Dating, Result, Rows, RowSize, is_small
from penstock.spark.turn_input import TurnInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("rows", "row_bytes", "small"),
    [
        (20_000, None, True),
        (20_000, 1e6, True),
        (20_001, None, False),
        (100_000, 100.0, True),
        (100_000, 200.0, False),
        (100_001, 1.0, False),
    ],
)
def test_rows_come_to_the_driver_if_they_are_few_or_known_to_be_small(
    rows: int, row_bytes: float | None, small: bool
) -> None:
    assert is_small(rows, row_bytes) == small
    assert is_small(rows, row_bytes, on_cluster=True) == (rows <= 20_000)


def test_the_size_of_rows_is_that_in_memory_however_often_they_repeat_in_a_file(tmp_path: Path) -> None:
    few = pa.table({"text": ["x" * 2000] * 10})
    many = pa.table({"text": [f"{n % 4}" * 2000 for n in range(5000)]})
    for name, part in (("a", many.slice(0, 3000)), ("b", many.slice(3000)), ("c", many.slice(5000))):
        pq.write_table(part, tmp_path / name)
    found = RowSize.of_files([tmp_path / name for name in "abc"])
    assert found is not None
    assert found.bytes == pytest.approx(2004, abs=10)
    assert not found.is_sure
    assert RowSize.of_files([tmp_path / "c"]) is None
    assert RowSize.of(many.slice(5000)) is None
    assert [size and size.is_sure for size in (RowSize.of(few), RowSize.of(many))] == [False, True]


@pytest.mark.spark
def test_a_result_knows_how_large_its_rows_are_whoever_wrote_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    def result(*, small: bool) -> Result:
        frame = spark.range(1000).selectExpr("id", "if(id % 10 = 0, 'bad', null) dead_letter", "'line' raw")
        return Result(Rows.of(frame), small, tmp_path, Dating(TurnInput()))

    few, many = result(small=True), result(small=False)
    with few.split() as (good, dead):
        assert (good.table().num_rows, dead.table().num_rows) == (900, 100)
    with many.split() as (good, dead), good.files() as files, dead.files() as buried:
        assert (pq.read_table(files).num_rows, pq.read_table(buried).num_rows) == (900, 100)
    assert few.row_size == RowSize(few.table().nbytes / 1000, is_sure=True)
    assert many.row_size is not None
    assert many.row_size.bytes == pytest.approx(8, abs=1)


@pytest.mark.spark
def test_once_the_size_of_rows_is_known_turns_of_as_many_go_through_the_driver(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, runs, by_tasks = spool(), engine(), []
    files = Result.files

    def counted(result: Result) -> AbstractContextManager[list[Path]]:
        by_tasks.append(result)
        return files(result)

    monkeypatch.setattr(Result, "files", counted)
    pipeline = Pipeline("p")
    rows = pipeline.source("numbers", sources.FromSpool(source, "n BIGINT"))
    rows.operator("next", lambda frame: frame.selectExpr("n + 1 as n")).sink(
        "out", sinks.Parquet(tmp_path / "out")
    )
    runs.submit(pipeline)
    for turn in range(3):
        source.append(pa.table({"n": list(range(25_000 * turn, 25_000 * (turn + 1)))}))
        runs.drain()
    assert len(by_tasks) == 1
    found = pq.read_table(tmp_path / "out")["n"].to_pylist()
    assert sorted(found) == list(range(1, 75_001))
