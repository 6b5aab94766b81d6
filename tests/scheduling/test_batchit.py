"""Full batches by deadline, then the fullest; a block is waited for, a deadline is not."""

from __future__ import annotations

from dataclasses import replace

from penstock.scheduling.check import check_policy
from penstock.scheduling.consumption import Planned
from penstock.scheduling.contexts import PriorityContext
from penstock.scheduling.decisions import Grant, Hold
from penstock.scheduling.laxity import Start
from penstock.scheduling.policies import BatchIt, Llf
from penstock.scheduling.scheduler import Scheduler
from penstock.scheduling.stage_view import StageView


def view(
    name: str, rows: int, arrival: float, target: float | None, planned: int | None, **more: object
) -> StageView:
    made = StageView(name, "p", rows, arrival, arrival, latency_seconds=target, planned_rows=planned)
    return replace(made, **more)  # type: ignore[arg-type]


def order(*views: StageView, now: float) -> list[str]:
    scheduler = Scheduler(BatchIt(), 1, Planned(), patience_seconds=30.0)
    for each in views:
        scheduler.wait(each)
    found = []
    while isinstance(decision := scheduler.next(now), Grant):
        found.append(decision.stage)
        scheduler.finished(decision.stage, now)
    return found


def test_it_is_a_policy() -> None:
    check_policy(BatchIt())


def test_full_batches_go_by_their_deadline_before_all_that_are_not() -> None:
    early = view("early", 50, 10.0, 2.0, 50)
    late = view("late", 500, 9.0, 30.0, 50)
    fullest = view("fullest", 45, 9.0, 30.0, 50)
    few = view("few", 3, 8.0, 30.0, 50)
    assert order(few, fullest, late, early, now=10.1) == ["early", "late", "fullest", "few"]


def test_a_batch_that_must_start_now_goes_as_if_it_were_full() -> None:
    full = view("full", 50, 10.0, 5.0, 50, start_deadline=14.0)
    lull = view("lull", 3, 9.6, 0.5, 50, start_deadline=10.0)
    assert order(full, lull, now=9.7) == ["full", "lull"]
    assert order(full, lull, now=9.95) == ["lull", "full"]


def test_a_turn_takes_the_batch_that_was_planned_or_what_there_is() -> None:
    scheduler = Scheduler(BatchIt(), 4, Planned())
    for each in (view("a", 500, 10.0, 2.0, 50), view("b", 5, 10.0, 2.0, 50), view("c", 70, 10.0, 2.0, None)):
        scheduler.wait(each)
    granted = {
        decision.stage: decision.rows for _ in range(3) if isinstance(decision := scheduler.next(10.0), Grant)
    }
    assert granted == {"a": 50, "b": 5, "c": 70}


def test_a_block_that_is_not_complete_waits_though_slots_are_idle() -> None:
    scheduler = Scheduler(BatchIt(), 1, Planned(), patience_seconds=30.0)
    scheduler.wait(view("block", 10, 10.0, 5.0, 5, block_rows=15))
    held = scheduler.next(10.1)
    assert isinstance(held, Hold)
    assert held.until == 40.0  # patience
    assert isinstance(scheduler.next(39.9), Hold)
    scheduler.wait(view("block", 15, 10.0, 5.0, 5, block_rows=15))
    granted = scheduler.next(39.9)
    assert isinstance(granted, Grant)
    assert granted.rows == 15


def blocked() -> Scheduler:
    scheduler = Scheduler(BatchIt(), 1, Planned(), patience_seconds=30.0)
    scheduler.wait(view("block", 10, 10.0, 1.0, 5, block_rows=15, start_deadline=10.5))
    return scheduler


def test_a_block_that_never_comes_is_waited_for_until_patience_ends() -> None:
    assert isinstance(blocked().next(40.0), Grant)


def test_once_no_more_rows_come_a_block_runs_as_it_is_when_nothing_else_does() -> None:
    scheduler = blocked()
    scheduler.wait(view("other", 5, 10.0, 5.0, 5, start_deadline=14.0))
    scheduler.draining = True
    assert isinstance(decision := scheduler.next(11.0), Grant)
    assert decision.stage == "other"
    assert isinstance(scheduler.next(11.0), Hold)
    # What it makes may yet complete the block.
    scheduler.finished("other", 11.2)
    assert isinstance(decision := scheduler.next(11.2), Grant)
    assert (decision.stage, decision.rows) == ("block", 10)


def test_a_block_that_waits_keeps_no_other_stage_from_starting_in_time() -> None:
    scheduler = blocked()
    scheduler.resize(2)
    scheduler.wait(view("full", 50, 10.0, 9.0, 50, start_deadline=18.0))
    assert isinstance(scheduler.next(10.0), Grant)
    scheduler.wait(view("part", 5, 10.0, 5.0, 50, start_deadline=14.0))
    held = scheduler.next(11.0)
    assert isinstance(held, Hold)
    assert (held.stage, held.until) == ("part", 13.0)
    assert isinstance(decision := scheduler.next(13.0), Grant)
    assert decision.stage == "part"


def test_a_window_that_waits_a_little_is_not_behind_a_block_that_waits_long() -> None:
    scheduler = blocked()
    deferred = PriorityContext("m", 0.0, 14.0, 0.0, 12.0, 5.0, True)
    scheduler.wait(view("window", 1, 10.0, 5.0, 50, context=deferred))
    held = scheduler.next(10.1)
    assert isinstance(held, Hold)
    assert (held.stage, held.until) == ("window", 12.0)
    assert isinstance(scheduler.next(12.0), Grant)


def test_a_window_that_is_not_complete_waits_too() -> None:
    deferred = PriorityContext("m", 0.0, 14.0, 0.0, 12.0, 5.0, True)
    open_window = view("window", 10, 10.0, 5.0, 50, context=deferred)
    assert order(open_window, now=10.1) == []
    assert order(view("window", 60, 10.0, 5.0, 50, context=deferred), now=10.1) == ["window"]
    assert order(open_window, now=12.1) == ["window"]


def test_a_flush_is_due_as_it_is() -> None:
    flush = view("flush", 0, 10.0, 5.0, 50, flush=True)
    assert order(flush, view("few", 10, 9.0, 1.0, 50), now=10.0) == ["flush", "few"]


def test_nothing_starves() -> None:
    scheduler = Scheduler(BatchIt(), 1, Planned(), patience_seconds=30.0)
    scheduler.wait(view("few", 1, 10.0, None, 50))
    for turn in range(40):
        now = 10.0 + turn
        scheduler.wait(view("full", 50, now, 1.0, 50))
        decision = scheduler.next(now)
        assert isinstance(decision, Grant)
        scheduler.finished(decision.stage, now)
        if decision.stage == "few":
            break
    assert now == 40.0


def test_reasons_tell_how_full_a_batch_was() -> None:
    policy = BatchIt()
    assert policy.reason(view("a", 50, 0.0, 1.0, 50)) == "batch of 50 full, earliest deadline"
    assert policy.reason(view("a", 20, 0.0, 1.0, 50)) == "no batch is full, 40% of 50 is the most"
    assert policy.reason(view("a", 20, 0.0, 1.0, None)) == "no plan for it yet, earliest deadline"


def test_part_of_a_batch_leaves_the_last_free_slot_to_a_full_one_or_to_one_that_must_start() -> None:
    scheduler = Scheduler(BatchIt(), 2, Planned())
    scheduler.wait(view("full", 50, 10.0, 5.0, 50, start_deadline=14.0))
    assert isinstance(scheduler.next(10.0), Grant)
    scheduler.wait(view("part", 20, 10.0, 5.0, 50, start_deadline=14.0))
    held = scheduler.next(10.0)
    assert isinstance(held, Hold)
    # A fifth of its target, a second, is in reserve.
    assert (held.stage, held.until) == ("part", 13.0)
    scheduler.wait(view("other", 50, 10.0, 5.0, 50))
    granted = scheduler.next(10.0)
    assert isinstance(granted, Grant)
    assert granted.stage == "other"
    scheduler.finished("other", 10.5)
    assert isinstance(scheduler.next(10.5), Hold)
    assert isinstance(scheduler.next(13.0), Grant)


def test_part_of_a_batch_without_a_target_is_looked_at_again_when_patience_ends() -> None:
    scheduler = Scheduler(BatchIt(), 2, Planned(), patience_seconds=30.0)
    scheduler.wait(view("full", 50, 1.0, 5.0, 50, start_deadline=14.0))
    assert isinstance(scheduler.next(1.0), Grant)
    scheduler.wait(view("part", 5, 1.0, None, 100))
    held = scheduler.next(2.0)
    assert isinstance(held, Hold)
    assert held.until == 31.0
    assert isinstance(scheduler.next(31.0), Grant)


def test_in_an_idle_pool_part_of_a_batch_runs_at_once() -> None:
    for slots in (1, 2):
        scheduler = Scheduler(BatchIt(), slots, Planned())
        scheduler.wait(view("part", 20, 10.0, 5.0, 50))
        assert isinstance(scheduler.next(10.0), Grant)


def granted_rows(policy: BatchIt | Llf, *views: StageView, now: float = 10.0) -> dict[str, int]:
    scheduler = Scheduler(policy, 1, Planned(), grain_seconds=1.0)
    for each in views:
        scheduler.wait(each)
    decision = scheduler.next(now)
    assert isinstance(decision, Grant)
    return {decision.stage: decision.rows}


BACKLOG = view("a", 5000, 10.0, 20.0, 50, fixed_seconds=0.1, row_seconds=0.0001, start_deadline=29.0)


def test_under_llf_the_planned_size_is_the_size_of_the_turn() -> None:
    assert granted_rows(BatchIt(), BACKLOG) == {"a": 1000}
    assert granted_rows(Llf(), BACKLOG) == {"a": 50}


def test_under_llf_laxity_cuts_a_planned_turn_for_a_stage_that_must_start() -> None:
    patient = view("a", 5000, 10.0, 20.0, 2000, fixed_seconds=0.1, row_seconds=0.0005, start_deadline=29.0)
    assert granted_rows(Llf(), patient) == {"a": 2000}
    scheduler = Scheduler(Llf(), 1, Planned(), grain_seconds=1.0)
    scheduler.wait(patient)
    # In half a second the only slot must be free: 1.3 times the turn, as turns are often longer.
    scheduler.expect("urgent", Start(10.5, "urgent"))
    decision = scheduler.next(10.0)
    assert isinstance(decision, Grant)
    assert decision.rows == round((0.5 / 1.3 - 0.1) / 0.0005)


def test_a_policy_that_is_changed_changes_whether_turns_are_stretched() -> None:
    scheduler = Scheduler(Llf(), 1, Planned())
    scheduler.reschedule(policy=BatchIt())
    scheduler.wait(BACKLOG)
    decision = scheduler.next(10.0)
    assert isinstance(decision, Grant)
    assert decision.rows == 1000
    scheduler.finished("a", 10.1)
    scheduler.reschedule(policy=Llf())
    scheduler.wait(BACKLOG)
    decision = scheduler.next(10.2)
    assert isinstance(decision, Grant)
    assert decision.rows == 50


def test_with_a_limit_on_rows_no_turn_is_stretched() -> None:
    assert granted_rows(BatchIt(), replace(BACKLOG, exact=True)) == {"a": 50}


def test_a_turn_takes_a_whole_block_though_less_was_planned() -> None:
    block = replace(BACKLOG, row_seconds=0.01, block_rows=120)
    # 1.3 s are more than a grain, and part of a block would be for nothing.
    assert granted_rows(BatchIt(), block) == {"a": 120}


def test_of_a_backlog_a_turn_takes_what_doubles_it_at_most() -> None:
    backlog = view("a", 5000, 10.0, 2.0, 50, fixed_seconds=0.1, row_seconds=0.0001)
    assert Planned().rows(backlog) == 1000
    assert Planned().rows(replace(backlog, rows_waiting=300)) == 300
    assert Planned().rows(replace(backlog, row_seconds=0.01)) == 50
    assert Planned().rows(replace(backlog, exact=True)) == 50
