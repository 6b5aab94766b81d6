"""Stages without rows that could start: in idle slots alone, one at a time, and never before any work."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from penstock.scheduling import Fifo, Grant, Hold, Llf, Policy, Scheduler, StageView
from penstock.scheduling.contexts import PriorityContext
from penstock.scheduling.laxity import Start
from penstock.scheduling.policies import BatchIt

NEW = StageView(
    "new", "p", 0, ready_since=0.0, oldest_arrival=0.0, flush=True, starts=True, start_deadline=inf
)
BUSY = StageView("busy", "p", 10, ready_since=5.0, oldest_arrival=5.0)


def granted(scheduler: Scheduler, now: float) -> list[str]:
    names = []
    while isinstance(decision := scheduler.next(now), Grant):
        names.append(decision.stage)
    return names


@pytest.mark.parametrize("policy", [Fifo(), Llf(), BatchIt()], ids=str)
def test_work_goes_first_however_long_a_start_has_waited(policy: Policy) -> None:
    scheduler = Scheduler(policy, slots=1, patience_seconds=30.0)
    scheduler.wait(NEW)
    scheduler.wait(BUSY)
    assert granted(scheduler, 100.0) == ["busy"]
    scheduler.finished("busy", 101.0)
    decision = scheduler.next(101.0)
    assert isinstance(decision, Grant)
    assert (decision.stage, decision.rows) == ("new", 0)
    assert "slots are idle: its start; waited 101.00 s" in decision.reason


def test_one_starts_at_a_time_and_the_first_to_come_first() -> None:
    scheduler = Scheduler(Fifo(), slots=3)
    for name in ("b", "a"):
        scheduler.wait(replace(NEW, name=name))
        scheduler.wait(replace(NEW, name=name))
    assert granted(scheduler, 1.0) == ["b"]
    scheduler.finished("b", 2.0)
    assert granted(scheduler, 2.0) == ["a"]


def test_a_wide_one_keeps_no_slot_free() -> None:
    scheduler = Scheduler(Fifo(), slots=2)
    scheduler.wait(BUSY)
    scheduler.wait(replace(NEW, slots=2))
    scheduler.wait(replace(NEW, name="narrow"))
    assert granted(scheduler, 5.0) == ["busy", "narrow"]
    scheduler.wait(replace(BUSY, name="other"))
    scheduler.finished("busy", 6.0)
    assert granted(scheduler, 6.0) == ["other"]


def test_a_slot_stays_free_for_who_must_start_soon() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.wait(NEW)
    scheduler.expect("urgent", Start(2.0, "urgent", 0.05))
    assert isinstance(scheduler.next(1.0), Hold)
    scheduler.expect("urgent", Start(9.0, "urgent", 0.05))
    assert granted(scheduler, 1.0) == ["new"]


def test_it_may_start_beside_work_that_is_put_off() -> None:
    scheduler = Scheduler(Llf(), slots=2, patience_seconds=30.0)
    # A row of a window that is not complete, whose turn would be nothing but fixed cost.
    later = PriorityContext("m", 0.0, 9.0, 0.0, 9.0, 10.0, deferred=True)
    scheduler.wait(replace(BUSY, context=later, fixed_seconds=0.1, rows_seen=10))
    assert isinstance(scheduler.next(5.0), Hold)
    scheduler.wait(NEW)
    assert granted(scheduler, 5.0) == ["new"]


def test_a_slot_stays_free_for_rows_that_are_put_off_and_must_start_soon() -> None:
    later = PriorityContext("m", 0.0, 9.0, 0.0, 9.0, 10.0, deferred=True)
    urgent = replace(BUSY, context=later, fixed_seconds=0.1, rows_seen=10, start_deadline=6.5)
    for slots, started in ((1, []), (2, ["new"])):
        scheduler = Scheduler(Llf(), slots=slots, patience_seconds=30.0)
        scheduler.wait(urgent)
        scheduler.wait(NEW)
        assert granted(scheduler, 5.0) == started


def test_one_that_gets_rows_waits_in_line_like_any_other() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(NEW)
    scheduler.wait(replace(NEW, rows_waiting=7, starts=False, flush=False))
    decision = scheduler.next(1.0)
    assert isinstance(decision, Grant)
    assert decision.rows == 7
    scheduler.finished("new", 2.0)
    assert isinstance(scheduler.next(2.0), Hold)


def test_one_that_is_gone_does_not_start() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(NEW)
    scheduler.forget("new")
    assert isinstance(scheduler.next(1.0), Hold)
