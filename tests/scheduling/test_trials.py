"""Stages whose costs are hardly known, beside urgent ones that would fill all slots."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest

from penstock.scheduling import Grant, Hold, Llf, Scheduler, Sjf, StageView
from penstock.scheduling.contexts import PriorityContext
from penstock.scheduling.laxity import FEW_ROWS, PROBE_SECONDS, Start
from penstock.scheduling.trials import MOST_TRIALS

COLD_SECONDS, URGENT_SECONDS = 1.5, 0.25
NEW = StageView(
    "new", "p", 100_000, 0.0, 0.0, start_deadline=7200.0, trusted=False,
    context=PriorityContext("new", 0.0, 7200.0, 0.0, 0.0, 7200.0),
)  # fmt: skip


def urgent(now: float) -> StageView:
    context = PriorityContext("urgent", 0.0, now, 0.0, now, 0.8)
    # As cold itself: its own turns do not count as the others' first ones.
    return replace(NEW, name="urgent", rows_waiting=10, ready_since=now, start_deadline=now, context=context)


def always_urgent(scheduler: Scheduler, seconds: float, *stages: StageView) -> list[tuple[float, str]]:
    """Who began when on one slot, where an urgent stage has rows at all times and so have the others."""
    for each in stages:
        scheduler.wait(each)
    views, now, began = {each.name: each for each in stages}, 0.0, []
    while now < seconds:
        scheduler.wait(urgent(now))
        granted = scheduler.next(now)
        assert isinstance(granted, Grant)
        began.append((now, granted.stage))
        now += URGENT_SECONDS if granted.stage == "urgent" else COLD_SECONDS
        scheduler.finished(granted.stage, now)
        if granted.stage in views:
            scheduler.wait(replace(views[granted.stage], ready_since=now))
    return began


def test_first_turns_come_one_at_a_time_and_leave_half_of_the_time_to_urgent_stages() -> None:
    scheduler = Scheduler(Llf(), 1, patience_seconds=1000.0)
    began = always_urgent(scheduler, 21.0, NEW, replace(NEW, name="newer"))
    tried = [each for each in began if each[1] != "urgent"]
    assert tried[:2] == [(PROBE_SECONDS, "new"), (PROBE_SECONDS + 2 * COLD_SECONDS, "newer")]
    assert len(tried) == 7
    gaps = [later - sooner for (sooner, _), (later, _) in pairwise(tried)]
    assert min(gaps) >= 2 * COLD_SECONDS


def test_one_that_never_teaches_what_it_costs_goes_first_only_so_often() -> None:
    scheduler = Scheduler(Llf(), 1, patience_seconds=inf)
    began = always_urgent(scheduler, 100.0, NEW)
    assert Counter(name for _, name in began)["new"] == MOST_TRIALS


def test_the_very_first_turn_has_few_rows_and_says_why_it_went_first() -> None:
    scheduler = Scheduler(Llf(), 1)
    scheduler.wait(NEW)
    scheduler.wait(urgent(PROBE_SECONDS))
    granted = scheduler.next(PROBE_SECONDS)
    assert isinstance(granted, Grant)
    assert (granted.stage, granted.rows) == ("new", FEW_ROWS)
    assert "its costs are hardly known" in granted.reason


def test_part_of_a_block_would_teach_nothing() -> None:
    scheduler = Scheduler(Llf(), 1)
    scheduler.wait(replace(NEW, block_rows=200_000))
    scheduler.wait(urgent(PROBE_SECONDS))
    assert scheduler.next(PROBE_SECONDS).stage == "urgent"


def test_policies_that_know_no_deadlines_have_no_first_turns() -> None:
    scheduler = Scheduler(Sjf(), 1)
    scheduler.wait(replace(NEW, fixed_seconds=1.0))
    scheduler.wait(urgent(PROBE_SECONDS))
    assert scheduler.next(PROBE_SECONDS).stage == "urgent"


@pytest.mark.parametrize(("new_slots", "first_slots"), [(2, 1), (1, 2)], ids=["wide", "behind a wide one"])
def test_no_slot_is_kept_for_a_first_turn_nor_taken_from_the_first_in_line(
    new_slots: int, first_slots: int
) -> None:
    scheduler = Scheduler(Llf(), 2)
    scheduler.wait(replace(urgent(0.0), name="running"))
    assert isinstance(scheduler.next(0.0), Grant)
    scheduler.wait(replace(NEW, slots=new_slots))
    scheduler.wait(replace(urgent(PROBE_SECONDS), slots=first_slots))
    decision = scheduler.next(PROBE_SECONDS)
    assert (decision.stage, isinstance(decision, Hold)) == ("urgent", first_slots == 2)


def test_a_hold_ends_when_a_first_turn_is_due() -> None:
    scheduler = Scheduler(Llf(), 1)
    # Four in line whose turns of two seconds would make an urgent one late, and behind them the new one.
    for number in range(4):
        context = PriorityContext(str(number), 0.0, 100.0 + number, 0.0, 0.0, 7200.0)
        known = replace(NEW, trusted=True, rows_seen=100_000, fixed_seconds=2.0, row_seconds=1e-4)
        scheduler.wait(replace(known, name=str(number), ready_since=1.0, context=context))
    scheduler.wait(NEW)
    scheduler.expect("urgent", Start(3.5, "urgent", 0.05, ready=3.0, lapses=4.0))
    held = scheduler.next(1.0)
    assert isinstance(held, Hold)
    assert held.until == PROBE_SECONDS
