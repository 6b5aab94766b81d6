"""What is read from the graphs of pipelines: the lines of the drawing, disks, and the privacy budgets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.dashboard.fakes import FakeEngine
from tests.pipeline.fakes import FakeSink, FakeSource, same

from penstock.dashboard.collector import Collector
from penstock.dashboard.watched import budgets_of, disks_of, edges, folders_of
from penstock.operators.privacy import Budget, private_counts
from penstock.pipeline import Pipeline, sinks
from penstock.pipeline.sources import FromSpool
from penstock.queues.spool import Spool
from penstock.stages import cut


def private(budget: Budget) -> Pipeline:
    pipeline = Pipeline("wifi")
    seen = pipeline.source("seen", FakeSource()).operator("clean", same).queue()
    release = private_counts(
        budget,
        product="flow",
        size="1m",
        on="ts",
        subject="device",
        epsilon=0.1,
        by="room",
        groups=("a", "b"),
    )
    release.add_to(seen, "counts").sink("out", FakeSink())
    return pipeline


def test_a_loop_is_a_line_back() -> None:
    pipeline = Pipeline("p")
    back = pipeline.loop("again", "n LONG")
    tried = pipeline.source("rows", FakeSource()).union("all", back).operator("try", same)
    tried.operator("failed", same).feed(back)
    tried.sink("out", FakeSink())
    found = set(edges(cut(pipeline)))
    assert ("source:rows", "p.try", "p.rows", False) in found
    assert [each for each in found if each[3]] == [("p.failed", "p.try", "p.failed", True)]


def test_the_folders_of_sinks_and_spools_are_found(tmp_path: Path) -> None:
    with Spool(tmp_path / "in") as source, Spool(tmp_path / "out") as kept:
        pipeline = Pipeline("p")
        rows = pipeline.source("rows", FromSpool(source, "n LONG")).operator("same", same)
        rows.sink("files", sinks.Parquet(tmp_path / "files"))
        rows.sink("table", sinks.Table(tmp_path / "rows.db", "rows"))
        rows.sink("spool", sinks.ToSpool(kept))
        rows.sink("other", FakeSink())
        found = folders_of([cut(pipeline)])
    assert {each.name for each in found} == {"files", "rows.db", "out", "in"}


def test_a_disk_is_told_once_by_its_first_folder_though_that_is_not_made_yet(tmp_path: Path) -> None:
    [disk] = disks_of([tmp_path / "state", tmp_path / "not" / "yet", tmp_path])
    assert disk.path == str(tmp_path / "state")
    assert 0 <= disk.free_bytes <= disk.total_bytes


def test_the_disk_of_a_sink_elsewhere_is_looked_at_too(tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one disk here")
    pipeline = Pipeline("p")
    pipeline.source("rows", FakeSource()).sink("files", sinks.JsonLines(elsewhere / "penstock-not-made"))
    seen = Collector(FakeEngine(tmp_path, declared=[pipeline])).look(0.0).snapshot
    assert [each.path for each in seen.disks] == [str(tmp_path), "/dev/shm/penstock-not-made"]


def test_the_budgets_of_private_releases_are_found_and_told_of_near_their_end(tmp_path: Path) -> None:
    budget = Budget(tmp_path / "ledger", 1.0)
    engine = FakeEngine(tmp_path, declared=[private(budget)])
    assert budgets_of(engine.graphs.values()) == {"flow": budget}
    collector = Collector(engine)
    budget.charge("r1", "flow", ["ann", "bob"], 0.9)
    budget.charge("r2", "flow", ["bob"], 0.05)
    seen = collector.look(engine.now).snapshot
    assert [(each.product, each.share_spent) for each in seen.budgets] == [("flow", 0.95)]
    [alert] = [each for each in seen.alerts if each.kind == "budget"]
    assert alert.reason.startswith("95% of the privacy budget is spent by the subject that spent most")
