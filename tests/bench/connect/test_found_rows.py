from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Spool
from penstock.bench.connect.found_rows import FOUND, ids_in, put_losses
from penstock.bench.result import BenchResult


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the rows 0 to 4 the third is missing, the second is there twice, and nobody has sent 9."""
    with Spool(tmp_path / FOUND) as spool:
        for ids in ([0, 1, 2], [2, 4, 9]):
            spool.append(pa.table({"id": pa.array(ids, pa.int64()), "more": ["x"] * 3}))
        assert ids_in(spool).to_pylist() == [0, 1, 2, 2, 4, 9]
    return tmp_path


def test_rows_that_are_missing_are_lost_and_those_too_many_are_doubled(folder: Path) -> None:
    result = BenchResult("connect")
    put_losses(result, "http", folder, 5)
    assert result.figures == {"http_lost": 1, "http_doubled": 2}
    assert result.missed == ["http_lost", "http_doubled"]


def test_doubles_are_told_and_not_held_against_what_is_at_least_once(folder: Path) -> None:
    result = BenchResult("connect")
    put_losses(result, "mqtt", folder, 5, exactly_once=False)
    assert result.figures == {"mqtt_lost": 1, "mqtt_doubled": 2}
    assert result.missed == ["mqtt_lost"]


def test_a_spool_that_got_nothing_has_lost_all(tmp_path: Path) -> None:
    result = BenchResult("connect")
    put_losses(result, "files", tmp_path, 5)
    assert result.figures == {"files_lost": 5, "files_doubled": 0}
