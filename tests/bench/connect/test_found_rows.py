from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.connect.found_rows import count_ids, put_losses, wait_for_ids
from penstock.bench.result import BenchResult, at_most


def test_rows_that_are_missing_or_there_twice_are_counted_and_hidden_files_are_not(tmp_path: Path) -> None:
    for name, ids in (("a.parquet", [0, 1, 2]), ("b.parquet", [2, 4]), (".c.parquet", [3])):
        pq.write_table(pa.table({"id": ids}), tmp_path / name)
    assert sorted(count_ids(tmp_path).items()) == [(0, 1), (1, 1), (2, 2), (4, 1)]
    assert wait_for_ids(tmp_path, 4, 0.0)
    assert not wait_for_ids(tmp_path, 5, 0.0)
    result = BenchResult("connect")
    put_losses(result, "mqtt", tmp_path, 5, at_most(0))
    assert (result.figures["mqtt_lost"], result.figures["mqtt_doubled"]) == (1, 1)
