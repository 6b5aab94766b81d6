"""Rows that come in order are never late, however turns cut them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.flows import Flow, go_on, rows_to_feed
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import table

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("consumption", ["half", "at-most-70", "all"])
def test_segments_of_growing_size_leave_no_row_of_theirs_late(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, consumption: str
) -> None:
    # Spark reads the largest file of a turn first: what one stage writes is out of order for the next.
    flow, runs, rows = Flow(spool(), tmp_path / "out"), engine(consumption=consumption), rows_to_feed()
    start = 0
    for size in range(10, 100, 10):
        flow.source.append(table(rows[start : start + size]))
        start += size
    running = runs.submit(flow.pipeline())
    go_on(runs, running)
    assert [stage.late_rows for stage in runs.stages()] == [0, 0, 0]
    flow.check(rows[:start])
