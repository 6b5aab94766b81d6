from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from penstock.scheduling import StageView
from penstock.scheduling.waiting import Place, WaitingStages


def view(name: str, since: float = 0.0, start_by: float = inf) -> StageView:
    return StageView(name, "p", 10, ready_since=since, oldest_arrival=since, slots=1, start_deadline=start_by)


def test_each_order_has_a_first_of_its_own() -> None:
    waiting = WaitingStages()
    waiting.put(view("by policy", since=3.0, start_by=30.0), Place(0, 1.0))
    waiting.put(view("old", since=1.0), Place(0, 2.0))
    waiting.put(view("soon", since=2.0, start_by=20.0), Place(1, 0.0))
    found = [each.name for each in (waiting.first, waiting.oldest, waiting.soonest) if each is not None]
    assert found == ["by policy", "old", "soon"]
    assert {each.name for each in waiting.starting_before(25.0)} == {"soon"}
    assert {each.name for each in waiting.starting_before(31.0)} == {"soon", "by policy"}


def test_new_figures_replace_the_old_ones_in_all_orders() -> None:
    waiting = WaitingStages()
    waiting.put(view("a", since=1.0, start_by=10.0), Place(0, 1.0))
    waiting.put(view("b", since=2.0, start_by=20.0), Place(0, 2.0))
    waiting.put(view("a", since=3.0, start_by=30.0), Place(0, 3.0))
    assert [each and each.name for each in (waiting.first, waiting.oldest, waiting.soonest)] == ["b"] * 3
    waiting.take("b")
    assert [each and each.name for each in (waiting.first, waiting.oldest, waiting.soonest)] == ["a"] * 3
    assert len(waiting) == 1


def test_without_a_place_for_one_all_stay_where_they_are() -> None:
    waiting = WaitingStages()
    waiting.put(view("a"), Place(0, 1.0))
    waiting.put(view("b"), Place(0, 2.0))
    with pytest.raises(KeyError):
        waiting.reorder(lambda each: {"a": Place(0, 9.0)}[each.name])
    assert waiting.first is not None
    assert waiting.first.name == "a"
    waiting.reorder(lambda each: {"a": Place(0, 9.0), "b": Place(0, 8.0)}[each.name])
    assert waiting.first.name == "b"


def test_heaps_stay_small_however_often_figures_change() -> None:
    waiting = WaitingStages()
    for number in range(5000):
        waiting.put(
            view(f"stage {number % 10}", start_by=float(number)), Place(0, float(number), float(number))
        )
        heaps = (waiting._by_place, waiting._by_age, waiting._by_start, waiting._by_end)
        assert all(len(heap) <= 3 * len(waiting) for heap in heaps)
    for number in range(10):
        waiting.take(f"stage {number}")
    assert [waiting._by_place, waiting._by_age, waiting._by_start, waiting._by_end] == [[], [], [], []]


def test_those_that_are_put_off_are_told_when_their_time_is_over() -> None:
    waiting = WaitingStages()
    waiting.put(view("a"), Place(2, 1.0, until=12.0))
    waiting.put(view("b"), Place(2, 2.0, until=11.0))
    waiting.put(view("c"), Place(0, 3.0))
    assert waiting.until == 11.0
    assert waiting.put_off_until(10.9) == []
    assert [each.name for each in waiting.put_off_until(11.5)] == ["b"]
    assert waiting.until == 12.0
    waiting.take("a")
    assert (waiting.until, waiting.put_off_until(99.0)) == (inf, [])


def test_all_can_be_had_in_their_order() -> None:
    waiting = WaitingStages()
    assert list(waiting.in_order()) == []
    for number in (5, 3, 8, 1, 9, 2):
        waiting.put(view(str(number)), Place(number % 2, float(number)))
    waiting.put(view("3"), Place(1, 7.0))
    waiting.take("8")
    found = [(level, each.name) for level, each in waiting.in_order()]
    assert found == [(0, "2"), (1, "1"), (1, "5"), (1, "3"), (1, "9")]


def test_who_must_start_first_is_told_less_the_reserve_of_each() -> None:
    waiting = WaitingStages()
    far = replace(view("a far target", start_by=10.0), latency_seconds=8.0)  # a second of reserve
    near = replace(view("a near target", start_by=9.5), latency_seconds=0.4)  # a tenth of a second
    for each in (near, far):
        waiting.put(each, Place(0, 1.0))
    assert waiting.soonest is far
    assert list(waiting.starting_before(9.2)) == [far]
