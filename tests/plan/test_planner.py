"""The planner over simulated looks: measured rates and costs in, plans with reasons out."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, same

from penstock.measure.profiles import StageProfile
from penstock.pipeline import Pipeline
from penstock.plan.changes import PlanChange
from penstock.plan.planner import BatchPlanner, Offered, PlanLook
from penstock.plan.triggers import Conditional, Every, EveryProduct, Trigger, Tuned
from penstock.stages import StageGraph, cut


def graph(target: str = "2s") -> StageGraph:
    pipeline = Pipeline("p", fuse=False)
    read = pipeline.source("in", FakeSource()).operator("read", same)
    read.operator("count", same, stateful=True, forgets=True).sink("out", FakeSink(), latency=target)
    return cut(pipeline)


def profile(row_seconds: float = 0.0001, turns: int = 10, state_seconds: float = 0.0) -> StageProfile:
    return StageProfile(0.001, 1.0, 0.05, row_seconds, turns, 0.1, 5000, state_seconds)


@dataclass
class Site:
    """Two stages on some slots, to which rows come; time passes by the second."""

    trigger: Trigger = field(default_factory=Conditional)
    target: str = "2s"
    slots: int = 2
    most_rows: int | None = None

    def __post_init__(self) -> None:
        self.graph = graph(self.target)
        self.planner = BatchPlanner(self.trigger, most_rows=self.most_rows)
        self.costs = {"p.read": profile(), "p.count": profile()}
        self.rows, self.now = 0, 0.0
        self.starting: frozenset[str] = frozenset()

    def look(self) -> PlanChange | None:
        offered = {name: Offered(self.rows, 0.0) for name in ("p.read", "p.count")}
        seen = PlanLook(self.now, (self.graph,), self.costs.get, offered, self.slots, {}, self.starting)
        return self.planner.look(seen)

    def run(self, seconds: int, rate: int) -> list[PlanChange]:
        found = []
        for _ in range(seconds):
            self.now += 1.0
            self.rows += rate
            if (change := self.look()) is not None:
                found.append(change)
        return found


def test_no_plan_is_made_before_rows_come_and_costs_are_known() -> None:
    site = Site()
    assert site.run(5, 0) == []
    site.costs = {name: profile(turns=2) for name in site.costs}
    assert site.run(5, 100) == []
    assert site.planner.plan is None


def test_the_first_plan_holds_and_stays_while_rates_and_costs_do() -> None:
    site = Site()
    (change,) = site.run(300, 100)
    assert (change.reason, change.holds, change.shortage) == ("the first plan", True, "")
    assert set(change.rows) == {"p.read", "p.count"}
    assert list(site.planner.changes) == [change]
    assert site.planner.made == 1
    assert site.planner.plan is not None
    assert site.planner.plan.rates == {"p.read": pytest.approx(100.0), "p.count": pytest.approx(100.0)}


def test_three_times_the_rate_is_planned_for_within_seconds_and_a_third_of_it_after_a_while() -> None:
    site = Site()
    site.run(60, 100)
    more = site.run(60, 300)
    assert more[0].at - 60.0 <= 4.0
    assert more[0].reason.endswith("rows/s come to p.read, planned for 100")
    fewer = site.run(120, 100)
    assert fewer[0].at - 120.0 > 5.0
    assert fewer[0].reason.startswith("only ")


def test_a_stage_whose_cost_becomes_known_is_planned_for() -> None:
    site = Site()
    site.costs["p.count"] = profile(turns=1)
    (first,) = site.run(5, 100)
    assert set(first.rows) == {"p.read"}
    site.costs["p.count"] = profile()
    (second,) = site.run(5, 100)
    assert second.reason == "the cost of p.count is known now"


def test_dearer_turns_lead_to_another_plan_only_if_a_product_is_late_by_them() -> None:
    site = Site()
    site.run(5, 100)
    site.costs["p.count"] = profile(row_seconds=0.00015)
    assert site.run(5, 100) == []
    site.costs["p.count"] = profile(row_seconds=0.008)
    (change,) = site.run(1, 100)
    assert change.reason.startswith("by what turns cost now ")


def test_the_reserve_takes_up_costs_that_vary_and_a_new_plan_comes_where_it_is_too_little() -> None:
    site = Site(target="10min", slots=4)
    site.costs = {name: profile(row_seconds=0.0088) for name in site.costs}
    (first,) = site.run(5, 100)
    assert first.holds
    site.costs = {name: profile(row_seconds=0.0096) for name in site.costs}
    assert site.run(60, 100) == []
    site.costs = {name: profile(row_seconds=0.0104) for name in site.costs}
    assert site.run(1, 100)[0].reason == "by what turns cost now the slots are too few for the batches"


def test_while_state_is_loaded_its_time_counts_and_then_no_more() -> None:
    site = Site()
    site.costs["p.count"] = profile(state_seconds=1.5)
    site.starting = frozenset({"p.count"})
    (first,) = site.run(3, 100)
    assert first.delays["p.out"] > 1.5
    site.starting = frozenset()
    (second,) = site.run(3, 100)
    assert second.delays["p.out"] < 1.0
    assert site.run(100, 100) == []


def test_targets_that_state_alone_breaks_are_told_without_asking_for_slots() -> None:
    site = Site()
    site.costs["p.count"] = profile(state_seconds=5.0)
    site.starting = frozenset({"p.count"})
    (first,) = site.run(3, 100)
    assert not first.holds
    assert first.shortage == "while state is loaded no plan holds: p.out will be late once"


def test_where_no_plan_holds_the_one_that_violates_least_is_in_force_and_says_what_is_short() -> None:
    site = Site(slots=1)
    site.costs["p.count"] = profile(row_seconds=0.002)
    (change,) = site.run(10, 1000)
    assert not change.holds
    assert change.rows["p.count"] > 100
    assert change.shortage.startswith("no plan holds: ")
    assert "rows/s can be held" in change.shortage


def test_what_is_short_is_looked_at_every_half_minute_at_most() -> None:
    site = Site(trigger=Every(1.0), slots=1)
    site.costs["p.count"] = profile(row_seconds=0.002)
    changes = site.run(65, 1000)
    told = [change.at for change in changes if change.shortage]
    assert len(changes) == 65
    assert told == [1.0, 31.0, 61.0]


def test_batches_have_no_more_rows_together_than_the_limit() -> None:
    site = Site(most_rows=60, target="30s")
    (change,) = site.run(10, 100)
    assert change.holds
    assert sum(change.rows.values()) <= 60


def test_after_every_product_a_plan_is_made() -> None:
    site = Site(trigger=EveryProduct())
    assert len(site.run(10, 100)) == 1
    site.planner.product_made()
    assert [change.reason for change in site.run(10, 100)] == ["a product was made"]


def test_a_tuned_period_follows_from_the_day_before() -> None:
    steady, changing = Site(trigger=Tuned()), Site(trigger=Tuned())
    steady.planner.history.restore([100.0] * 3600)
    changing.planner.history.restore(100.0 if second // 15 % 2 else 300.0 for second in range(3600))
    assert len(steady.run(300, 100)) == 1
    assert steady.planner.tuned_seconds == 600.0
    changes = changing.run(60, 100)
    assert changing.planner.tuned_seconds < 10.0
    assert changes[1].reason.endswith(" s have passed, the period tuned from history")


def test_a_period_is_tuned_anew_when_twice_as_much_is_known_and_daily() -> None:
    site = Site(trigger=Tuned())
    site.run(59, 100)
    assert site.planner.tuned_seconds == 1.0  # nothing was known
    site.run(3, 100)
    assert site.planner.tuned_seconds == 20.0  # a minute is three times as long
    site.planner.history.restore([100.0] * 86_400)
    site.run(62, 100)
    assert site.planner.tuned_seconds == 600.0
    # Rows come in a way that asks for another period, which is seen a day later.
    site.planner.history.restore(100.0 if second // 15 % 2 else 300.0 for second in range(86_400))
    site.run(100, 100)
    assert site.planner.tuned_seconds == 600.0
    site.now += 86_400.0
    site.run(1, 100)
    assert site.planner.tuned_seconds < 10.0


def test_a_stage_that_has_gone_is_forgotten() -> None:
    site = Site()
    site.run(5, 100)
    site.planner.look(PlanLook(6.0, (), site.costs.get, {}, 2))
    assert site.planner.look(PlanLook(7.0, (), site.costs.get, {}, 2)) is None
