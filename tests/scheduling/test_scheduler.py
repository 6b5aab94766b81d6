import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.scheduling import (
    AtMost,
    Fifo,
    Grant,
    Hold,
    LongestQueue,
    MinLatency,
    MinMemory,
    Policy,
    Scheduler,
    SchedulingError,
    StageView,
)


def view(name: str, rows: int = 10, since: float = 0.0, slots: int = 1, flush: bool = False) -> StageView:
    return StageView(name, "p", rows, ready_since=since, oldest_arrival=since, slots=slots, flush=flush)


def grants(scheduler: Scheduler, now: float) -> list[str]:
    names = []
    while isinstance(decision := scheduler.next(now), Grant):
        names.append(decision.stage)
    return names


class Naive:
    """The same rules over plain dicts: sorts everything that waits at every decision."""

    def __init__(self, key: Callable[[StageView], Any], slots: int) -> None:
        self.key = key
        self.slots = slots
        self.waits: dict[str, StageView] = {}
        self.runs: dict[str, int] = {}
        self.ended: dict[str, float] = {}

    def withdraw(self, name: str) -> None:
        self.waits.pop(name, None)

    def next(self) -> tuple[str, int] | str:
        ready = []
        for name, one in self.waits.items():
            if name not in self.runs:
                ready.append(replace(one, ready_since=max(one.ready_since, self.ended.get(name, 0.0))))
        if not ready:
            return "nobody"
        first = min(ready, key=lambda one: (self.key(one), one.ready_since, one.name))
        slots = min(first.slots, self.slots)
        if sum(self.runs.values()) + slots > self.slots:
            return f"not yet {first.name}"
        self.runs[first.name] = slots
        del self.waits[first.name]
        return first.name, slots

    def finished(self, name: str, now: float) -> None:
        del self.runs[name]
        self.ended[name] = now


@dataclass(frozen=True)
class Step:
    do: str
    stage: int
    rows: int
    slots: int
    age: int


step = st.builds(
    Step,
    do=st.sampled_from(["wait", "wait", "wait", "next", "next", "finish", "withdraw", "resize"]),
    stage=st.integers(0, 7),
    rows=st.integers(1, 5),
    slots=st.integers(1, 4),
    age=st.integers(0, 3),
)


PROFILES: tuple[dict[str, Any], ...] = tuple(
    {"depth": depth, "seconds_per_row": seconds, "selectivity": selectivity, "steepness": steepness}
    for depth, seconds, selectivity, steepness in (
        (2, 0.0, 0.0, None),
        (2, 0.001, 6.0, -5000.0),
        (1, 0.01, 0.5, 50.0),
        (1, 0.01, 0.25, 75.0),
        (1, 0.01, 0.0, 100.0),
        (0, 0.2, 1.0, 5.0),
        (0, 0.1, 1.0, 0.0),
        (0, 0.1, 1.0, None),
    )
)


def seconds_a_row_out(one: StageView) -> float:
    """None come out of a stage that keeps all; one that is not known yet goes first."""
    if one.seconds_per_row == 0.0:
        return 0.0
    return one.seconds_per_row / one.selectivity if one.selectivity else math.inf


@pytest.mark.parametrize(
    ("policy", "key"),
    [
        (Fifo(), lambda one: one.ready_since),
        (LongestQueue(), lambda one: -one.rows_waiting),
        (MinLatency(), lambda one: (one.depth, seconds_a_row_out(one))),
        (MinMemory(), lambda one: -math.inf if one.steepness is None else -one.steepness),
    ],
)
@given(plan=st.lists(step, max_size=120))
def test_a_schedule_is_that_of_an_implementation_that_sorts_at_every_decision(
    policy: Policy, key: Callable[[StageView], Any], plan: list[Step]
) -> None:
    scheduler, naive = Scheduler(policy, slots=3), Naive(key, slots=3)
    for second, one in enumerate(plan):
        now, name = 100.0 + second, f"stage {one.stage}"
        if one.do == "wait":
            waits = replace(view(name, one.rows, since=now - one.age, slots=one.slots), **PROFILES[one.stage])
            scheduler.wait(waits)
            naive.waits[name] = waits
        elif one.do == "next":
            decision, expected = scheduler.next(now), naive.next()
            if isinstance(decision, Grant):
                assert (decision.stage, decision.slots) == expected
            else:
                assert expected == (f"not yet {decision.stage}" if decision.stage else "nobody")
        elif one.do == "finish" and name in naive.runs:
            scheduler.finished(name, now)
            naive.finished(name, now)
        elif one.do == "withdraw":
            scheduler.withdraw(name)
            naive.withdraw(name)
        elif one.do == "resize":
            scheduler.resize(one.slots)
            naive.slots = one.slots
        assert dict(scheduler.running) == naive.runs
        assert scheduler.free_slots == max(naive.slots - sum(naive.runs.values()), 0)
        assert scheduler.stages_waiting == len(naive.waits.keys() - naive.runs.keys())


def test_a_grant_says_who_how_much_on_what_and_why() -> None:
    scheduler = Scheduler(LongestQueue(), slots=2, consumption=AtMost(1000))
    scheduler.wait(view("alerts.parse", rows=1200, since=10.0))
    grant = scheduler.next(10.31)
    assert isinstance(grant, Grant)
    assert (grant.stage, grant.rows, grant.slots, grant.at) == ("alerts.parse", 1000, 1, 10.31)
    assert grant.waited_seconds == pytest.approx(0.31)
    assert grant.reason == "longest queue: 1,200 rows; waited 0.31 s; 2 of 2 slots free"


def test_a_scheduler_holds_when_no_stage_waits() -> None:
    assert Scheduler(Fifo(), slots=2).next(5.0) == Hold("no stage waits", 5.0)


def test_ties_go_by_the_time_of_waiting_and_then_by_name() -> None:
    scheduler = Scheduler(LongestQueue(), slots=4)
    for one in (view("c", since=1.0), view("b", since=2.0), view("a", since=2.0), view("d", since=0.5)):
        scheduler.wait(one)
    assert grants(scheduler, 3.0) == ["d", "c", "a", "b"]


def test_a_flush_is_granted_without_rows() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(view("a", rows=0, flush=True))
    grant = scheduler.next(0.5)
    assert isinstance(grant, Grant)
    assert grant.rows == 0
    assert grant.reason == "waited longest: a flush; waited 0.50 s; 1 of 1 slot free"


def test_new_figures_replace_the_old_ones() -> None:
    scheduler = Scheduler(LongestQueue(), slots=3)
    scheduler.wait(view("a", rows=10))
    scheduler.wait(view("b", rows=20))
    scheduler.wait(view("a", rows=30))
    assert grants(scheduler, 1.0) == ["a", "b"]


def test_a_stage_in_a_turn_is_not_granted_a_second_one() -> None:
    scheduler = Scheduler(Fifo(), slots=2)
    scheduler.wait(view("a"))
    assert grants(scheduler, 1.0) == ["a"]
    scheduler.wait(view("a"))
    assert grants(scheduler, 2.0) == []
    scheduler.finished("a", 3.0)
    assert grants(scheduler, 3.0) == ["a"]


def test_a_stage_ready_again_after_its_turn_goes_to_the_end_of_the_line() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(view("a", since=0.0))
    assert grants(scheduler, 0.0) == ["a"]
    scheduler.wait(view("a", since=0.1))  # rows came while its own turn ran
    scheduler.wait(view("b", since=1.0))
    scheduler.finished("a", 5.0)
    scheduler.wait(view("a", since=0.1))  # and again, just after it
    grant = scheduler.next(6.0)
    assert isinstance(grant, Grant)
    assert grant.stage == "b"
    scheduler.finished("b", 7.0)
    grant = scheduler.next(7.0)
    assert isinstance(grant, Grant)
    assert (grant.stage, grant.waited_seconds) == ("a", 2.0)


def test_nobody_overtakes_a_wide_stage_that_waits_for_its_slots() -> None:
    scheduler = Scheduler(Fifo(), slots=2)
    scheduler.wait(view("narrow", since=0.0))
    assert grants(scheduler, 0.0) == ["narrow"]
    scheduler.wait(view("wide", since=1.0, slots=2))
    scheduler.wait(view("late", since=2.0))
    assert scheduler.next(3.0) == Hold("needs 2 slots, 1 of 2 is free", 3.0, "wide")
    scheduler.finished("narrow", 4.0)
    assert grants(scheduler, 4.0) == ["wide"]
    assert scheduler.next(4.0) == Hold("needs 1 slot, 0 of 2 are free", 4.0, "late")


def test_a_wide_stage_is_not_starved_by_narrow_ones_that_always_come_back() -> None:
    scheduler = Scheduler(Fifo(), slots=2)
    for name in ("a", "b", "c"):
        scheduler.wait(view(name))
    scheduler.wait(view("wide", slots=2))
    turns = []
    for second in range(20):
        turns += grants(scheduler, float(second))
        done = min(scheduler.running)
        scheduler.finished(done, float(second))
        scheduler.wait(view(done, since=float(second), slots=2 if done == "wide" else 1))
    assert turns.count("wide") >= 3


def test_a_stage_wider_than_the_pool_gets_the_whole_pool_and_is_told() -> None:
    scheduler = Scheduler(Fifo(), slots=2)
    scheduler.wait(view("wide", slots=4))
    grant = scheduler.next(1.0)
    assert isinstance(grant, Grant)
    assert grant.slots == 2
    assert grant.reason == (
        "waited longest: 10 rows; waited 1.00 s; 2 of 2 slots free; needs 4 slots, the pool has 2"
    )
    assert dict(scheduler.running) == {"wide": 2}


def test_a_withdrawn_stage_is_not_granted_until_it_waits_again() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(view("a"))
    scheduler.withdraw("a")
    scheduler.withdraw("never seen")
    assert grants(scheduler, 1.0) == []
    scheduler.wait(view("a"))
    assert grants(scheduler, 1.0) == ["a"]


def test_a_stage_stands_in_line_from_its_waiting_to_the_end_of_its_turn() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(view("a"))
    scheduler.wait(view("b"))
    assert scheduler.in_line == {"a", "b"}
    assert grants(scheduler, 1.0) == ["a"]
    scheduler.withdraw("b")
    assert scheduler.in_line == {"a"}
    scheduler.finished("a", 2.0)
    assert scheduler.in_line == frozenset()


def test_a_stage_withdrawn_during_its_turn_keeps_its_slots_until_it_is_finished() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(view("a"))
    assert grants(scheduler, 1.0) == ["a"]
    scheduler.wait(view("a"))
    scheduler.withdraw("a")
    assert scheduler.free_slots == 0
    scheduler.finished("a", 2.0)
    assert scheduler.free_slots == 1
    assert grants(scheduler, 2.0) == []


def test_a_smaller_pool_lets_turns_end_and_grants_no_more_until_it_fits() -> None:
    scheduler = Scheduler(Fifo(), slots=3)
    for name in ("a", "b", "c", "d"):
        scheduler.wait(view(name))
    assert grants(scheduler, 1.0) == ["a", "b", "c"]
    scheduler.resize(1)
    assert scheduler.free_slots == 0
    scheduler.finished("a", 2.0)
    scheduler.finished("b", 2.0)
    assert scheduler.next(2.0) == Hold("needs 1 slot, 0 of 1 are free", 2.0, "d")
    scheduler.finished("c", 3.0)
    assert grants(scheduler, 3.0) == ["d"]


def test_another_policy_puts_what_waits_in_order_anew() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    for one in (view("first", rows=1, since=0.0), view("long", rows=90, since=1.0), view("last", rows=5)):
        scheduler.wait(one)
    scheduler.withdraw("last")
    scheduler.reschedule(policy=LongestQueue(), consumption=AtMost(50))
    grant = scheduler.next(2.0)
    assert isinstance(grant, Grant)
    assert (grant.stage, grant.rows) == ("long", 50)
    assert grant.reason.startswith("longest queue: 90 rows")
    scheduler.finished("long", 3.0)
    scheduler.reschedule(consumption=AtMost(3))
    scheduler.wait(view("long", rows=90, since=3.0))
    grant = scheduler.next(3.0)
    assert isinstance(grant, Grant)
    assert (grant.stage, grant.rows) == ("long", 3)


def test_a_policy_without_an_answer_is_refused_and_the_old_one_stays() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(view("a", since=1.0))
    scheduler.wait(view("b", rows=90, since=2.0))
    with pytest.raises(SchedulingError):
        scheduler.reschedule(Undecided(), AtMost(1))
    grant = scheduler.next(3.0)
    assert isinstance(grant, Grant)
    assert (grant.stage, grant.rows) == ("a", 10)


def test_the_running_stages_cannot_be_changed_from_outside() -> None:
    with pytest.raises(TypeError):
        Scheduler(Fifo(), slots=1).running["a"] = 1  # type: ignore[index]


def test_finishing_a_turn_that_is_not_there_is_refused() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(view("a"))
    with pytest.raises(SchedulingError) as error:
        scheduler.finished("a", 1.0)
    assert (
        str(error.value) == "stage 'a' must be in a turn to finish one, but it is in none: it holds no slots"
    )
    assert error.value.stage == "a"


def test_waiting_with_nothing_to_do_is_refused() -> None:
    with pytest.raises(SchedulingError) as error:
        Scheduler(Fifo(), slots=1).wait(view("a", rows=0))
    assert str(error.value) == (
        "stage 'a' must have rows or a flush to wait for a turn, got 0 rows: "
        "withdraw it, an empty turn is never granted"
    )


def test_a_pool_that_begins_without_slots_is_refused() -> None:
    with pytest.raises(SchedulingError) as error:
        Scheduler(Fifo(), slots=0)
    assert str(error.value) == "a pool must have at least 1 slot, got 0: no turn could ever run"


def test_a_pool_cannot_be_resized_below_nothing() -> None:
    scheduler = Scheduler(Fifo(), slots=2)
    with pytest.raises(SchedulingError) as error:
        scheduler.resize(-1)
    assert str(error.value) == "a pool must have 0 slots or more, got -1: it stays as it was"
    assert scheduler.slots == 2


def test_a_pool_that_lost_all_its_slots_grants_nothing_and_says_so_until_one_comes() -> None:
    scheduler = Scheduler(Fifo(), slots=2)
    scheduler.wait(view("a"))
    scheduler.resize(0)
    reason = "the pool has no slots: no executor is registered"
    assert scheduler.next(1.0) == Hold(reason, 1.0, "a")
    scheduler.resize(1)
    assert grants(scheduler, 2.0) == ["a"]


@dataclass(frozen=True)
class Undecided:
    def priority(self, stage: StageView, now: float) -> float:
        return math.nan

    def reason(self, stage: StageView) -> str:
        return "undecided"


def test_a_priority_that_is_no_number_is_refused() -> None:
    with pytest.raises(SchedulingError) as error:
        Scheduler(Undecided(), slots=1).wait(view("a"))
    assert str(error.value) == "Undecided() must give stage 'a' a number, got nan: it has no place in line"


def test_who_is_first_in_line_can_be_asked_without_granting_anything() -> None:
    scheduler = Scheduler(Fifo(), 1)
    assert scheduler.upcoming == ""
    scheduler.wait(StageView("late", "p", 5, 11.0, 11.0))
    scheduler.wait(StageView("early", "p", 5, 10.0, 10.0))
    assert (scheduler.upcoming, scheduler.free_slots) == ("early", 1)
    scheduler.withdraw("early")
    assert scheduler.upcoming == "late"
