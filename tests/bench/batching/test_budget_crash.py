from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.bench.batching.budget_crash import EPSILON, budget_overrun, spent
from penstock.errors import PenstockError


def test_no_budget_is_overrun_by_processes_that_are_killed_at_any_moment() -> None:
    excess = budget_overrun(6)
    # Three releases at 0.3 of a budget of 1: somebody spent all that could be spent, and nobody more.
    assert excess == pytest.approx(0.9 - EPSILON)


def write(folder: Path, values: list[list[int]]) -> None:
    drawn = {"product": "p", "start": 0, "subjects": ["ann"]}
    (folder / "drawn").write_text(json.dumps(drawn) + "\n")
    published = [{"product": "p", "start": 0, "values": each} for each in values]
    (folder / "published").write_text("".join(json.dumps(each) + "\n" for each in published))


def test_the_same_answer_twice_is_spent_once_and_another_one_twice(tmp_path: Path) -> None:
    write(tmp_path, [[3], [3]])
    assert spent(tmp_path) == {("p", "ann"): 0.3}
    write(tmp_path, [[3], [4]])
    assert spent(tmp_path) == {("p", "ann"): 0.6}


def test_a_run_without_releases_proves_nothing(tmp_path: Path) -> None:
    write(tmp_path, [])
    with pytest.raises(PenstockError, match="releases must come out before they are counted"):
        spent(tmp_path)
