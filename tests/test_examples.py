"""The programs in examples/ run to their end, and what they make is right."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
EXAMPLES = Path(__file__).parents[1] / "examples"
Example = Callable[[str], dict[str, Any]]


@pytest.fixture
def example(spark: SparkSession, tmp_path: Path) -> Example:
    """Runs one in the session of the tests, and gives its names."""

    def run(name: str) -> dict[str, Any]:
        names = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)
        names["main"](tmp_path)
        return names

    return run


def test_the_first_pipeline_tells_the_peak_of_each_sensor(example: Example, tmp_path: Path) -> None:
    rows = example("first_pipeline")["readings"]().to_pylist()
    assert pq.read_table(tmp_path / "archive").num_rows == sum(row["celsius"] > 25 for row in rows)
    lines = [line for file in (tmp_path / "alarms").iterdir() for line in file.read_text().splitlines()]
    told = {(row["window"]["start"][17:19], row["sensor"]): row["peak"] for row in map(json.loads, lines)}
    peaks: dict[tuple[str, str], float] = {}
    for row in rows:
        if row["celsius"] > 25 and row["at"].second < 50:
            key = (f"{row['at'].second // 10 * 10:02}", row["sensor"])
            peaks[key] = max(row["celsius"], peaks.get(key, 0.0))
    assert told == peaks


def test_an_existing_query_keeps_the_large_orders(
    example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example("existing_query")
    assert "500 of 1000 orders are large" in capsys.readouterr().out
    assert pq.read_table(tmp_path / "out")["amount"].to_pylist().count(49.0) == 0


def test_two_tenants_get_all_their_counts(example: Example, tmp_path: Path) -> None:
    example("two_tenants")
    for tenant, rows_per_second in (("bidding", 1_000), ("billing", 20_000)):
        counted = Counter[str]()
        for row in pq.read_table(tmp_path / tenant).to_pylist():
            counted[row["ad"]] += row["clicks"]
        # The last second is still open.
        assert counted == Counter({f"ad{ad}": 5 * rows_per_second // 50 for ad in range(50)})


def test_what_is_shared_names_nobody_and_no_small_crowd(example: Example, tmp_path: Path) -> None:
    example("private_sharing")
    research = pq.read_table(tmp_path / "research").to_pylist()
    assert len(research) == 2000
    assert len({row["subject"] for row in research}) == 40
    assert not any("person" in row["subject"] for row in research)
    crowds = pq.read_table(tmp_path / "occupancy").to_pylist()
    assert {row["building"] for row in crowds} == {"library", "gym", None}
    assert all(row["subjects"] >= 5 for row in crowds if row["building"] is not None)


def test_a_policy_of_ones_own_serves_all(example: Example, tmp_path: Path) -> None:
    example("own_policy")
    assert pq.read_table(tmp_path / "few")["twice"].to_pylist() == [2 * id_ for id_ in range(200)]
    assert sorted(pq.read_table(tmp_path / "many")["id"].to_pylist()) == list(range(20_000))
