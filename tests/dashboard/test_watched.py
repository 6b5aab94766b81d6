"""What is read from the graphs of pipelines: the lines of the drawing, and the privacy budgets."""

from __future__ import annotations

from pathlib import Path

from tests.dashboard.fakes import FakeEngine
from tests.pipeline.fakes import FakeSink, FakeSource, same

from penstock.dashboard.collector import Collector
from penstock.dashboard.watched import budgets_of, edges
from penstock.operators.privacy import Budget, private_counts
from penstock.pipeline import Pipeline
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
