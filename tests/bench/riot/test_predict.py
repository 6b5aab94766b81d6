"""The way of published rows through the stages, and what turns cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Pipeline, Spool, sinks, sources
from penstock.bench.riot.predict import path_shares
from penstock.stages.fuse import cut


def test_the_way_of_a_row_leads_through_its_branch_only(tmp_path: Path) -> None:
    pipeline = Pipeline("p", fuse=False)
    with Spool(tmp_path / "in") as spool:
        parsed = pipeline.source("in", sources.FromSpool(spool, "value STRING")).operator(
            "parse", lambda x: x
        )
        trend = parsed.operator("smooth", lambda rows: rows).operator("trend", lambda rows: rows)
        count = parsed.operator("count", lambda rows: rows)
        trend.union("publish", count).sink("out", sinks.Console())
    graph = cut(pipeline)
    rows = {"parse": 100.0, "smooth": 100.0, "trend": 25.0, "count": 75.0, "publish": 0.0}
    stages = {f"p.{name}": {"rows_in": 100.0, "rows_out": out} for name, out in rows.items()}
    assert path_shares(graph, stages) == pytest.approx(
        {"p.parse": 1.0, "p.smooth": 0.25, "p.trend": 0.25, "p.count": 0.75, "p.publish": 1.0}
    )
