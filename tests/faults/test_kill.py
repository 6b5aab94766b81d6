"""The driver is killed with SIGKILL, twice, and the sinks hold every row once."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.crash import ROWS_PER_SECOND, Kill, Life, WorkerEnded, run_ordeal
from penstock.bench.crash_trace import Comparison, TraceSettings


@pytest.mark.spark
@pytest.mark.slow
def test_a_driver_killed_in_a_turn_and_in_recovery_loses_and_doubles_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    trace = TraceSettings(int(6 * ROWS_PER_SECOND), ROWS_PER_SECOND, seed=5)
    kills = [Kill("turn", 0.7), Kill("submitting", 0.4)]
    ordeal = run_ordeal(tmp_path, trace, kills, said.append)
    assert ordeal.comparison == Comparison(lost=0, doubled=0, wrong_windows=0)
    assert len(ordeal.lives) == 3
    assert said[0].startswith("kill 1 of 2 (running, after 0.7 s), ")


def test_a_worker_that_ends_by_itself_is_not_taken_for_a_killed_one(tmp_path: Path) -> None:
    life = Life(tmp_path, arguments=("not a number",))
    with pytest.raises(WorkerEnded, match="ended with code 1") as raised:
        life.until("turn", 60)
    assert "could not convert string to float" in str(raised.value)
