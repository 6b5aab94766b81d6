"""A driver killed while it releases from a privacy budget spends nothing twice, and says nothing new."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.faults.flows import rows_to_feed
from tests.faults.private_worker import EPSILON, RELEASE, WINDOW_SECONDS, budget_of, private_pipeline
from tests.spark.conftest import EngineFactory, eventually
from tests.spark.streams import json_rows, table

from penstock import Spool

SECONDS = 10
ROWS = rows_to_feed(100, seconds=SECONDS)
THREE = 3
"""Releases that a budget of 1 pays for, at 0.3 each."""


@pytest.mark.spark
@pytest.mark.slow
def test_a_budget_is_not_exceeded_by_a_pipeline_whose_driver_is_killed(
    engine: EngineFactory, tmp_path: Path
) -> None:
    budget = budget_of(tmp_path)
    with Spool(tmp_path / "input") as source:
        for start in range(0, len(ROWS), 10):
            source.append(table(ROWS[start : start + 10]))
    worker = subprocess.Popen([sys.executable, "-m", "tests.faults.private_worker", str(tmp_path)])
    try:
        eventually(lambda: worker.poll() is not None or budget.spent("rows", "a") > 0.0, 120.0)
        assert worker.poll() is None, "it ended by itself"
    finally:
        worker.kill()
        worker.wait()
    before = [str(row) for row in json_rows(tmp_path / "out")]
    with Spool(tmp_path / "input") as source:
        runs = engine(tmp_path / "state", policy="fifo", consumption="at-most-20")
        runs.submit(private_pipeline(source, tmp_path))
        runs.drain()
        runs.stop()
    found = json_rows(tmp_path / "out")
    assert set(before) <= {str(row) for row in found}
    windows = Counter(str(row["window"]) for row in found)
    assert windows == dict.fromkeys(windows, 1)
    assert len(windows) == SECONDS // WINDOW_SECONDS
    assert sum(row.get("value") is not None for row in found) == THREE
    for subject in "abc":
        assert budget.spent("rows", subject) == pytest.approx(THREE * RELEASE)
        assert budget.spent("rows", subject) <= EPSILON
