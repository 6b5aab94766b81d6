from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.errors import PenstockError
from penstock.operators.privacy import Budget
from penstock.operators.privacy.questions import Question, Sum, answers


@pytest.fixture
def budget(tmp_path: Path) -> Budget:
    return Budget(tmp_path / "ledger", 1.0)


def test_whoever_can_pay_is_charged_and_the_others_are_left_out(budget: Budget) -> None:
    assert budget.charge("r1", "flow", ["ann", "bob"], 0.7).admitted == {"ann", "bob"}
    assert budget.charge("r2", "flow", ["bob", "eve"], 0.4).admitted == {"eve"}
    assert budget.charge("r3", "flow", ["bob"], 0.3).admitted == {"bob"}
    assert [budget.spent("flow", name) for name in ("ann", "bob", "eve")] == [0.7, 1.0, 0.4]


def test_products_have_budgets_of_their_own(budget: Budget) -> None:
    assert budget.charge("r1", "flow", ["ann"], 1.0).admitted == {"ann"}
    assert budget.charge("r2", "heat", ["ann"], 1.0).admitted == {"ann"}
    assert budget.charge("r3", "flow", ["ann"], 1e-9).refused


def test_a_release_that_is_charged_again_costs_nothing_and_admits_the_same_subjects(budget: Budget) -> None:
    budget.charge("r1", "flow", ["ann"], 0.6)
    again = budget.charge("r1", "flow", ["ann", "bob"], 0.6)
    assert (again.admitted, again.released) == ({"ann"}, None)
    assert (budget.spent("flow", "ann"), budget.spent("flow", "bob")) == (0.6, 0.0)


def test_the_values_that_were_kept_first_are_the_values_for_ever(budget: Budget) -> None:
    budget.charge("r1", "flow", ["ann"], 0.6)
    assert budget.keep("r1", [3, None]) == (3, None)
    assert budget.keep("r1", [4, 4]) == (3, None)
    assert Budget(budget.path, 1.0).released("r1") == (3, None)
    assert budget.charge("r1", "flow", ["ann"], 0.6).released == (3, None)


def test_values_of_a_release_that_was_not_charged_are_refused(budget: Budget) -> None:
    with pytest.raises(PenstockError) as caught:
        budget.keep("r1", [3])
    assert str(caught.value) == "a release must be charged before it is kept, got 'r1': it is not released"
    assert budget.released("r1") is None


@settings(max_examples=25, deadline=None)
@given(some.lists(some.tuples(some.sets(some.sampled_from("abcd")), some.integers(1, 70)), max_size=12))
def test_no_sequence_of_charges_exceeds_a_budget_or_refuses_what_it_covers(
    tmp_path_factory: pytest.TempPathFactory, charges: list[tuple[set[str], int]]
) -> None:
    budget = Budget(tmp_path_factory.mktemp("ledger") / "ledger", 1.0)
    spent: Counter[str] = Counter()
    for number, (subjects, hundredths) in enumerate(charges):
        admitted = budget.charge(f"r{number}", "flow", subjects, hundredths / 100).admitted
        assert admitted == {each for each in subjects if spent[each] + hundredths <= 100}
        spent.update(dict.fromkeys(admitted, hundredths))
    assert all(budget.spent("flow", each) == spent[each] / 100 for each in "abcd")


def test_a_budget_written_with_decimals_pays_for_itself(tmp_path: Path) -> None:
    """0.29 * 1e9 is a little less than 290,000,000 in binary."""
    for hundredths in (1, 7, 28, 29, 57, 58, 99):
        epsilon = hundredths / 100
        charge = Budget(tmp_path / f"ledger{hundredths}", epsilon).charge("r", "flow", ["ann"], epsilon)
        assert charge.admitted == {"ann"}


def test_a_ledger_keeps_the_budget_it_was_made_with(budget: Budget) -> None:
    with pytest.raises(PenstockError) as caught:
        Budget(budget.path, 2.0)
    assert str(caught.value) == (
        f"the budget of the ledger {budget.path} must be the one it was made with, epsilon 1, got 2: "
        "what was spent would no longer be bounded"
    )


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), "1", None])
def test_an_epsilon_that_promises_nothing_is_refused(tmp_path: Path, epsilon: Any) -> None:
    with pytest.raises(PenstockError) as caught:
        Budget(tmp_path / "ledger", epsilon)
    assert str(caught.value) == (
        f"the budget must be an epsilon from 1e-09 to 1e+06, got {epsilon!r}: "
        "it is no promise that noise could keep"
    )


def test_a_ledger_that_is_removed_or_broken_pays_for_nothing(budget: Budget) -> None:
    budget.charge("r1", "flow", ["ann"], 0.5)
    for each in Path(budget.path).parent.glob("ledger*"):
        each.unlink()
    with pytest.raises(PenstockError, match=r"the budget ledger .* nothing is released"):
        budget.charge("r2", "flow", ["ann"], 0.5)
    Path(budget.path).write_bytes(os.urandom(4096))
    with pytest.raises(PenstockError, match=r"the budget ledger .* nothing is released"):
        budget.charge("r2", "flow", ["ann"], 0.5)


def test_a_ledger_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=r"the budget ledger .* nothing is released"):
        Budget(tmp_path / "nowhere" / "ledger", 1.0)


def test_a_charge_that_fails_midway_leaves_nothing(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise sqlite3.OperationalError("disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Budget, "_admitted", fails)
        with pytest.raises(PenstockError, match="disk is full: nothing is released"):
            budget.charge("r1", "flow", ["ann"], 0.5)
    assert budget.spent("flow", "ann") == 0.0
    assert budget.charge("r1", "flow", ["ann"], 1.0).admitted == {"ann"}


def test_each_charge_is_on_the_disk_before_it_returns(budget: Budget) -> None:
    with budget._ledger() as ledger:
        full = 2
        assert ledger.execute("PRAGMA synchronous").fetchone() == (full,)


def _charge(path: Path, first: int, admitted: Any) -> None:
    budget = Budget(path, 1.0)
    for number in range(first, first + 40):
        charge = budget.charge(f"r{number}", "flow", [f"s{each}" for each in range(50)], 0.1)
        admitted.put((number, len(charge.admitted)))


def test_processes_that_charge_at_once_spend_no_more_than_one_budget(tmp_path: Path) -> None:
    """Both ask for releases of their own and, in the middle, for the same ones."""
    processes = multiprocessing.get_context("spawn")
    told = processes.Queue()
    workers = [
        processes.Process(target=_charge, args=(tmp_path / "ledger", first, told)) for first in (0, 20)
    ]
    for each in workers:
        each.start()
    answers = [told.get(timeout=60) for _ in range(80)]
    for each in workers:
        each.join()
    admitted = dict(answers)
    assert sorted(admitted) == list(range(60))
    # Whole releases are paid, and no one release is paid by some of its subjects only.
    assert Counter(admitted.values()) == {50: 10, 0: 50}
    assert Budget(tmp_path / "ledger", 1.0).spent("flow", "s7") == 1.0


def test_a_turn_that_dies_between_charge_and_release_goes_on_with_whoever_paid(budget: Budget) -> None:
    question = Question("count", "flow", 1.0, None, ("all",), 60.0, 1, 1)
    summed: list[Any] = []

    def dies(paid: Any) -> Any:
        raise KeyboardInterrupt

    def sums(paid: Any) -> Any:
        summed.append(paid)
        return {start: {"all": Sum(len(subjects))} for start, subjects in paid.items()}

    with pytest.raises(KeyboardInterrupt):
        answers(budget, question, {0: ["ann", "bob"]}, dies)
    first = answers(budget, question, {0: ["ann", "bob"]}, sums)
    assert answers(budget, question, {0: ["ann", "bob"]}, dies) == first
    assert summed == [{0: {"ann", "bob"}}]
    assert budget.spent("flow", "ann") == 1.0
    # The next window finds both without means, and a third subject with them.
    assert answers(budget, question, {60: ["ann", "bob"]}, dies) == {60: (None,)}
    answers(budget, question, {120: ["ann", "eve"]}, sums)
    assert summed[1:] == [{120: {"eve"}}]


def test_what_is_spent_of_a_product_is_that_of_the_subject_that_spent_most(budget: Budget) -> None:
    assert budget.share_spent("flow") == 0.0
    budget.charge("r1", "flow", ["ann", "bob"], 0.3)
    budget.charge("r2", "flow", ["bob"], 0.45)
    budget.charge("r3", "heat", ["ann"], 1.0)
    assert budget.share_spent("flow") == 0.75
