"""Which executors count: those that were asked for the state directory, and have answered."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.spark.cluster import pool as cluster_pool
from penstock.spark.cluster.executors import Executor
from penstock.spark.cluster.pool import FIRST_TRIES, MOST_TRIES, ClusterPool
from penstock.spark.cluster.reach import Reach, UnreachableState

BUSY, BAD = Executor("busy", 1, "here", "worker-1"), Executor("bad", 1, "here", "worker-2")


class Watch:
    """Two executors, of which one may be sent away."""

    def __init__(self, session: object):
        self.there = [BUSY, BAD]

    def executors(self) -> tuple[Executor, ...]:
        return tuple(self.there)

    def send_away(self, executor: str) -> bool:
        self.there = [each for each in self.there if each.id != executor]
        return True


class Asked:
    """Answers of executors, one after the other; then none."""

    def __init__(self, *answers: Reach):
        self.answers = list(answers)
        self.asked: list[list[str]] = []

    def __call__(self, session: object, folder: Path, executors: Iterable[Executor]) -> Reach:
        self.asked.append([each.id for each in executors])
        return self.answers.pop(0) if self.answers else Reach()


def pool(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> ClusterPool:
    monkeypatch.setattr(cluster_pool, "ExecutorWatch", Watch)
    monkeypatch.setattr(cluster_pool, "asked_for", asked)
    return ClusterPool(cast(Any, None), Path("/shared/state"))


def test_an_executor_that_was_too_busy_to_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(Reach(answered=frozenset({"bad"})), Reach(), Reach(answered=frozenset({"busy"})))
    made = pool(monkeypatch, asked)
    made.begin()
    for _ in range(3):
        made.look(lambda slots: None)
    assert asked.asked == [["busy", "bad"], ["busy"], ["busy"]]


def test_one_that_answers_at_last_and_reaches_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(Reach(answered=frozenset({"busy"})), Reach((BAD,), frozenset({"bad"})))
    made = pool(monkeypatch, asked)
    assert made.begin() == 2
    slots: list[int] = []
    made.look(slots.append)
    assert slots == [1]


def test_a_start_waits_for_an_answer_of_one_that_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    made = pool(monkeypatch, Asked(Reach(), Reach((BAD,), frozenset({"bad"}))))
    with pytest.raises(UnreachableState, match="which worker-2 cannot"):
        made.begin()


def test_a_start_where_none_answers_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster_pool, "LOOK_SECONDS", 0.0)
    asked = Asked()
    assert pool(monkeypatch, asked).begin() == 2
    assert len(asked.asked) == FIRST_TRIES
    assert "no executor says whether it reaches /shared/state" in caplog.text


def test_one_that_never_answers_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(Reach(answered=frozenset({"bad"})))
    made = pool(monkeypatch, asked)
    made.begin()
    for _ in range(MOST_TRIES + 5):
        made.look(lambda slots: None)
    assert len(asked.asked) == 1 + MOST_TRIES


def test_a_folder_that_an_executor_does_not_reach_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = pool(monkeypatch, Asked(Reach((BAD,), frozenset({"bad"}))))
    with pytest.raises(
        UnreachableState, match="the folder of sink 'out' must be one that every worker reads"
    ):
        made.check(Path("/local/out"), "the folder of sink 'out'")
