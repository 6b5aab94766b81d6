"""What the parts of the bench make of their runs: pure, with runs that are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.result import BenchResult
from penstock.bench.scaling import control
from penstock.bench.scaling.allocations import (
    Tried,
    rank_correlation,
    relative_errors,
    tell_allocations,
    try_case,
)
from penstock.bench.scaling.bench import PARTS
from penstock.bench.scaling.bursty import bursty
from penstock.bench.scaling.cases import BURSTY, CASES, Case, distance, every_allocation, neighbours, shown
from penstock.bench.scaling.changes import changes
from penstock.bench.scaling.control import judge, last_slots, rescales
from penstock.bench.scaling.kept_cases import KeptCases
from penstock.bench.scaling.planning import logo_detection, plan_milliseconds, planning, some_network
from penstock.bench.scaling.predictions import CHOSEN, KINDS, STEADY
from penstock.bench.scaling.stand import POOL_SLOTS, Run, Stand, Times
from penstock.errors import PenstockError
from penstock.model import Network
from penstock.plan import assign_processors
from penstock.workloads.drs import TOPOLOGIES

TIMES = Times(warmup=1.0, measured=2.0, heat=1.0, minute=6.0)
CASE = Case("vld", 6.0, 10, "uniform")
BEST = {"extract": 4, "match": 5, "aggregate": 1}


class Told(Stand):
    """A stand whose runs take longer the further they are from `best`; models other than ours are `off`."""

    def __init__(self, best: Mapping[str, int] = BEST, off: float = 1.0):
        super().__init__(Path(), TIMES, lambda text: None)
        self.best, self.off = dict(best), off
        self.asked: list[tuple[str, int]] = []

    def seconds(self, slots: Mapping[str, int]) -> float:
        apart = sum(abs(slots[name] - self.best.get(name, 1)) for name in slots)
        return 1.0 + 0.1 * apart + 0.001 * next(iter(slots.values()))

    def ask(self, **request: Any) -> Any:
        if request["do"] == "plan":
            return {kind: {"slots": self.best, "seconds": 1.0} for kind in KINDS}
        if request["do"] == "predict":
            said = [self.seconds(each) for each in request["allocations"]]
            ours = (CHOSEN, STEADY)
            return [
                {kind: each if kind in ours else self.off * each for kind in (*KINDS, STEADY)}
                for each in said
            ]
        told = {"sojourn_seconds": self.seconds(request["slots"]), "meter_seconds": None, "models": {}}
        return {**told, "decisions": [], "by_interval": [1.0]}


def test_there_are_twelve_cases_of_five_shapes_with_4_to_22_slots() -> None:
    assert len(CASES) == 12
    assert {case.topology for case in CASES} == set(TOPOLOGIES)
    assert (min(case.most_slots for case in CASES), max(case.most_slots for case in CASES)) == (4, POOL_SLOTS)
    for case in (*CASES, *BURSTY):
        assert sum(case.first_slots.values()) == case.most_slots
        for name, each in TOPOLOGIES[case.topology].stages.items():
            assert case.first_slots[name] > case.inputs_per_second * each.rows * each.row_seconds, case.name


def test_the_nearest_neighbours_have_one_slot_elsewhere_then_two() -> None:
    found = neighbours(BEST, 4)
    assert sorted(map(shown, found)) == sorted(["3:6:1", "3:5:2", "5:4:1", "4:4:2"])
    more = neighbours(BEST, 5)
    assert more[:4] == found
    assert {distance(BEST, each) for each in more[4:]} == {4}
    assert {shown(each) for each in more[4:]} == {
        "2:7:1",
        "2:6:2",
        "2:5:3",
        "6:3:1",
        "5:3:2",
        "4:3:3",
        "3:4:3",
    }
    assert all(sum(each.values()) == 10 for each in more)
    assert len(neighbours({"a": 2, "b": 1, "c": 1}, 5)) == 2, "there are no more"


def test_only_the_case_of_four_slots_has_fewer_rivals_than_five() -> None:
    every = {case.name: list(every_allocation(case.stages, case.most_slots)) for case in CASES}
    assert {name: len(each) for name, each in every.items() if len(each) < 6} == {"loop 2.5/s K=4": 3}


def test_a_case_is_planned_from_what_was_measured_and_tried_with_its_neighbours() -> None:
    tried = try_case(Told(), CASE)
    assert tried.recommended == BEST
    assert shown(tried.runs[0].slots) == "4:5:1"
    assert [distance(BEST, run.slots) for run in tried.runs] == [0, 2, 2, 2, 2, 4]
    assert tried.is_best(tried.recommended)
    assert tried.pairs(CHOSEN) == [(run.seconds, run.seconds) for run in tried.runs]


def test_allocations_close_to_the_best_are_run_again_and_their_median_counts() -> None:
    close, far = {"extract": 5, "match": 4, "aggregate": 1}, {"extract": 3, "match": 6, "aggregate": 1}

    class Lucky(Told):
        """An allocation beside the best is quicker in its first run, by chance."""

        def ask(self, **request: Any) -> Any:
            said = super().ask(**request)
            if request["do"] == "run":
                self.asked.append((shown(request["slots"]), request["seed"]))
                lucky = request["slots"] == close and request["seed"] == 1
                slow = request["slots"] not in (BEST, close)
                said["sojourn_seconds"] = 0.9 if lucky else 2.0 if slow else said["sojourn_seconds"]
            return said

    for again, best in ((0, close), (2, BEST)):
        stand = Lucky()
        stand.times, stand.asked = replace(TIMES, again=again), []
        tried = try_case(stand, CASE)
        assert dict(tried.best.slots) == best
        assert [seed for slots, seed in stand.asked if slots == shown(close)] == [1, 2, 3][: 1 + again]
        assert [seed for slots, seed in stand.asked if slots == shown(far)] == [1]
    assert tried.seconds_of(close) == stand.seconds(close)


def test_what_comes_close_to_the_best_by_their_medians_is_run_again_too() -> None:
    seconds = {"4:5:1": [1.10, 1.3, 1.3], "5:4:1": [1.0, 1.4, 1.4], "3:6:1": [1.16, 1.6, 1.6]}

    class Drawn(Told):
        def ask(self, **request: Any) -> Any:
            said = super().ask(**request)
            if request["do"] == "run":
                drawn = seconds.get(shown(request["slots"]), [9.0])
                said["sojourn_seconds"] = drawn[request["seed"] - 1]
            return said

    stand = Drawn()
    stand.times = replace(TIMES, again=2)
    tried = try_case(stand, CASE)
    assert tried.seconds_of({"extract": 3, "match": 6, "aggregate": 1}) == 1.6
    assert tried.is_best(BEST)


def test_cases_that_are_kept_are_told_and_not_run_again(tmp_path: Path) -> None:
    stand = Told(off=0.5)
    made = KeptCases(tmp_path, TIMES).tried(CASE, lambda: try_case(stand, CASE))
    assert [path.name for path in tmp_path.iterdir()] == ["vld-6-s-K-10.json"]

    def refuse() -> Tried:
        raise AssertionError("it is there already")

    again = KeptCases(tmp_path, TIMES).tried(CASE, refuse)
    figures = []
    for tried in (made, again):
        tell_allocations(result := BenchResult("scaling"), [tried])
        figures.append((result.figures, result.tables[0].rows, result.setup["pairs"]))
    assert figures[0] == figures[1]
    longer = replace(TIMES, measured=99.0)
    with pytest.raises(PenstockError, match="cases that are told together must have run as long"):
        KeptCases(tmp_path, longer).tried(CASE, refuse)


class Crowded(Told):
    """A model that takes more than five slots at `match` for too many."""

    def ask(self, **request: Any) -> Any:
        said = super().ask(**request)
        if request["do"] != "predict":
            return said
        pairs = zip(said, request["allocations"], strict=True)
        return [{**each, CHOSEN: None, STEADY: None} if slots["match"] > 5 else each for each, slots in pairs]


def test_of_neighbours_as_near_those_that_would_not_keep_up_are_tried_last() -> None:
    tried = try_case(Crowded(), CASE)
    assert [shown(run.slots) for run in tried.runs][4] == "3:6:1"
    assert shown(try_case(Crowded(), CASE, most_neighbours=1).runs[1].slots) != "3:6:1"


def test_what_a_model_calls_endless_ranks_last_and_is_wrong_by_all_of_it() -> None:
    tried = try_case(Crowded(), CASE)
    assert (inf, tried.runs[4].seconds) in tried.pairs(CHOSEN)
    assert sorted(relative_errors([tried], CHOSEN)) == [0.0] * 5 + [1.0]
    result = BenchResult("scaling")
    tell_allocations(result, [tried])
    assert result.figures["rank_correlation"] < 0.95
    without = Tried(CASE, tried.recommended, tried.runs, [{} for _ in tried.runs])
    assert without.pairs(CHOSEN) == [], "a model that could not be made says nothing"


def test_ranks_within_cases_count_apart_from_those_over_all() -> None:
    def of(seconds: float) -> Tried:
        """Far from the others, and all wrong within."""
        runs = [Run(CASE, BEST, {"sojourn_seconds": seconds + n, "meter_seconds": None}) for n in range(3)]
        return Tried(CASE, BEST, runs, [dict.fromkeys((*KINDS, STEADY), seconds - n) for n in range(3)])

    result = BenchResult("scaling")
    tell_allocations(result, [of(100.0 * number) for number in range(1, 9)])
    assert result.figures["rank_correlation"] > 0.95
    assert result.figures["rank_correlation_within"] == pytest.approx(-1.0)


def test_the_figures_of_allocations() -> None:
    result = BenchResult("scaling")
    few = Case("loop", 2.5, 4, "uniform")
    tell_allocations(result, [try_case(Told(off=0.5), CASE)])
    assert result.figures["best_found"] == 1.0
    assert result.figures["model_error"] == 0.0
    assert result.figures["model_error_mmk"] == pytest.approx(0.5)
    assert result.figures["rank_correlation"] == pytest.approx(1.0)
    assert result.figures["rank_correlation_within"] == pytest.approx(1.0)
    assert result.missed == []
    assert result.tables[0].rows[0][-1] == "5"
    known = Told({"gather": 1, "work": 2, "check": 1})
    tell_allocations(other := BenchResult("scaling"), [try_case(known, few)])
    assert other.tables[0].rows[0][-1] == "2, all there are"
    wrong = Tried(CASE, recommended=BEST, runs=[Run(CASE, BEST, {"sojourn_seconds": 1.06})])
    wrong.runs.append(Run(CASE, {**BEST, "match": 4, "extract": 5}, {"sojourn_seconds": 1.0}))
    assert not wrong.is_best(wrong.recommended)


def test_rank_correlation_is_spearman_s() -> None:
    assert rank_correlation([(1, 3), (2, 2), (3, 1)]) == pytest.approx(-1.0)
    assert rank_correlation([(1, 10), (5, 20), (9, 80)]) == pytest.approx(1.0)
    assert rank_correlation([(1, 1), (2, 2), (inf, 3), (inf, 4)]) == pytest.approx(0.9487, abs=1e-4)
    assert rank_correlation([(1, 1), (2, 2), (inf, 4), (inf, 3)]) == pytest.approx(0.9487, abs=1e-4)
    assert rank_correlation([(inf, 1), (inf, 2)]) == 0.0


def test_what_each_model_chooses_under_bursty_service_is_told() -> None:
    result = BenchResult("scaling")
    bursty(Told({"extract": 3, "match": 3, "aggregate": 1}), result)
    assert result.figures == {"bursty_best_mmk": 1.0, "bursty_best_gigk": 1.0, "bursty_best_chosen": 1.0}
    assert result.tables[0].rows[0][:4] == ["vld 5/s K=7", "3:3:1", "3:3:1", "3:3:1"]


def test_what_other_models_choose_is_run_beside_our_neighbours_and_judged_by_that() -> None:
    far = {"aggregate": 3, "extract": 1, "match": 3}

    class Rivals(Told):
        def ask(self, **request: Any) -> Any:
            said = super().ask(**request)
            return {**said, "mmk": {"slots": far, "seconds": 1.0}} if request["do"] == "plan" else said

    stand = Rivals({"extract": 3, "match": 3, "aggregate": 1})
    tried = try_case(stand, BURSTY[0], most_neighbours=3, rivals=("mmk", "gigk", CHOSEN))
    assert [shown(run.slots) for run in tried.runs][-1] == "1:3:3"
    assert len(tried.predicted) == len(tried.runs) == 5
    assert not tried.is_best(far)
    result = BenchResult("scaling")
    bursty(stand, result)
    assert result.figures == {"bursty_best_mmk": 0.0, "bursty_best_gigk": 1.0, "bursty_best_chosen": 1.0}


def test_a_controlled_run_is_judged_by_its_minutes() -> None:
    minutes = [1, 1, 1, 9, 9, 3, 1, 1, 1, 1, 9, 1]
    found = judge(minutes, [0.5, 5.0, 8.0], [3.0, 9.0], target=3.0)
    assert found.settle_minutes == 2.0
    assert found.in_target_share == pytest.approx(6 / 7), "minutes before the first change do not count"
    assert found.needless == 2, "one before any change of rate, and a second one after it"
    never = judge([1, 1, 1, 9, 9, 1, 1, 9], [], [3.0, 5.0], target=3.0)
    assert never.settle_minutes == 5.0
    assert judge([1, 1, 1, None, 1, 1, 1], [], [3.0, 4.0], target=3.0).settle_minutes == 1.0


def test_changes_of_slots_are_read_from_the_decisions() -> None:
    wanted = {"vld.match": 6, "vld.aggregate": 1, "vld.extract": 5}
    change = {"at": 12.0, "changes": True, "slots": {"vld.extract": 4}, "reason": "short", "wanted": wanted}
    held = {"at": 18.0, "changes": False, "wanted": {}}
    run = Run(CASE, BEST, {"decisions": [change, held, {"at": 13.0, "stage": "vld.match"}]})
    assert rescales(run, 6.0) == [2.0]
    assert last_slots(run) == {"extract": 5, "match": 6, "aggregate": 1}
    assert last_slots(Run(CASE, BEST, {"decisions": []})) == BEST


class Ends(Told):
    """Runs under a controller that leads to what `best` is, or to `elsewhere`."""

    def __init__(self, best: Mapping[str, int], elsewhere: Mapping[str, int] | None = None):
        super().__init__(best)
        self.end = dict(elsewhere or best)

    def ask(self, **request: Any) -> Any:
        told = super().ask(**request)
        if request["do"] != "run" or "control" not in request or request["slots"] == self.end:
            return told
        wanted = {f"{request['topology']}.{stage}": each for stage, each in self.end.items()}
        change = {"at": 30.0, "changes": True, "wanted": wanted, "slots": {}, "reason": ""}
        return {**told, "decisions": [change]}


VLD = {"vld": control.PLACED["vld"]}
VLD_BEST, VLD_POOR = ({"extract": k, "match": 8 - k, "aggregate": 1} for k in (4, 6))


def test_convergence_wants_one_end_and_at_most_one_change() -> None:
    result = BenchResult("scaling")
    control.convergence(Ends(VLD_BEST), result, VLD)
    assert result.figures == {"converged": 1.0}
    assert [row[1:4] for row in result.tables[0].rows] == [
        ["3:5:1", "4:4:1", "1"],
        ["5:3:1", "4:4:1", "1"],
        ["4:4:1", "4:4:1", "0"],
    ]


def test_runs_that_agree_on_a_poor_place_have_not_converged() -> None:
    result = BenchResult("scaling")
    control.convergence(Ends(VLD_BEST, elsewhere=VLD_POOR), result, VLD)
    assert result.figures == {"converged": 0.0}
    assert result.tables[0].rows[-1][1:3] == ["4:4:1", "6:2:1"], "the best start is what was measured"


def test_pauses_and_losses_are_the_worst_that_were_seen() -> None:
    class Changed(Told):
        def ask(self, **request: Any) -> Any:
            pauses = {"stateless": [0.02, 0.05], "stateful": [1.5, 0.9]}
            return {"changes": 4, "lost": 0, "doubled": 0, "keys_miscounted": 1, "pauses": pauses}

    result = BenchResult("scaling")
    changes(Changed(), result, 4)
    assert result.figures == {
        "pause_ms_stateless": pytest.approx(50.0),
        "pause_ms_stateful": pytest.approx(1500.0),
        "lost": 1,
        "doubled": 0,
    }
    assert result.missed == ["lost"]


def test_plans_are_timed_for_networks_that_fit_their_slots() -> None:
    result = BenchResult("scaling")
    planning(result)
    assert set(result.figures) == {
        "plan_ms_k22",
        "plan_ms_k10000_n100",
        "plan_ms_k22_turns",
        "fewest_ms_k22_turns",
    }
    assert [row[0] for row in result.tables[0].rows] == ["12", "24", "48", "96", "192"]
    assert assign_processors(logo_detection(22), 22).total == 22
    assert some_network(100, 8000.0).busy_slots == pytest.approx(8000.0)


def test_each_plan_that_is_timed_has_models_of_its_own() -> None:
    made: list[Network] = []

    def make() -> Network:
        made.append(logo_detection(22))
        return made[-1]

    plan_milliseconds(make, 22, runs=3)
    assert len(made) == 3


def test_every_part_can_be_asked_for() -> None:
    assert list(PARTS) == [
        "planning",
        "allocations",
        "bursty",
        "control",
        "convergence",
        "changes",
        "simulator",
    ]
