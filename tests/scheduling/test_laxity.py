from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.measure.profiles import Profiler
from penstock.measure.turns import TurnRecord
from penstock.scheduling import (
    Edf,
    Fifo,
    Grant,
    Hold,
    Llf,
    Policy,
    Scheduler,
    Sjf,
    StageView,
    TokenShare,
)
from penstock.scheduling.contexts import PriorityContext
from penstock.scheduling.laxity import (
    PUT_OFF_SECONDS,
    SAFETY,
    Start,
    cut_for_room,
    cut_for_urgent,
    cut_to_grain,
    turn_seconds,
)
from penstock.scheduling.policies import BatchIt

BULK = StageView(
    "bulk", "p", 100_000, 0.0, 0.0, fixed_seconds=0.05, row_seconds=1e-5, start_deadline=7200.0,
    context=PriorityContext("b", 0.0, 7200.0, 0.0, 0.0, 7200.0), rows_seen=100_000,
)  # fmt: skip


def urgent(
    start: float, name: str = "urgent", deferred: bool = True, ready: float | None = None
) -> StageView:
    time = start - 0.7 if ready is None else ready
    context = PriorityContext(name, 0.0, start, 0.0, time, 0.8, deferred)
    return StageView(name, "q", 10, 0.0, 0.0, fixed_seconds=0.05, start_deadline=start, context=context)


def test_a_patient_turn_ends_before_an_urgent_one_must_start() -> None:
    start = SAFETY * 0.55
    cut = cut_for_urgent(BULK, 100_000, 0.0, [Start(start, "urgent")], ends=[])
    assert cut.rows == 50_000
    assert (cut.urgent, cut.end_by) == ("urgent", start)
    assert SAFETY * turn_seconds(BULK, cut.rows) == pytest.approx(start)


def test_it_is_not_cut_where_another_slot_is_free_by_then() -> None:
    urgent = Start(SAFETY * 0.55, "one")
    assert cut_for_urgent(BULK, 100_000, 0.0, [urgent], ends=[0.5]).rows == 100_000
    assert cut_for_urgent(BULK, 100_000, 0.0, [urgent], ends=[0.8]).rows == 50_000
    both = [urgent, Start(SAFETY * 0.75, "two")]
    cut = cut_for_urgent(BULK, 100_000, 0.0, both, ends=[0.5])
    assert (cut.rows, cut.urgent) == (70_000, "two")


def test_urgent_ones_that_share_the_slots_must_start_one_after_the_other() -> None:
    four = [Start(SAFETY * 0.75, name, SAFETY * 0.2) for name in "abcd"]
    # Two slots: the first two must be done when the last two start.
    cut = cut_for_urgent(BULK, 100_000, 0.0, four, ends=[SAFETY * 0.6])
    assert (cut.rows, cut.end_by) == (50_000, pytest.approx(SAFETY * 0.55))


def test_no_turn_is_cut_to_less_than_makes_sense() -> None:
    assert cut_for_urgent(BULK, 100_000, 0.0, [Start(SAFETY * 0.09, "urgent")], ends=[]).rows == 4_000
    assert cut_for_urgent(BULK, 100_000, 0.0, [Start(SAFETY * 0.06, "urgent")], ends=[]).rows == 0
    assert cut_for_urgent(BULK, 1_000, 0.0, [Start(SAFETY * 0.09, "urgent")], ends=[]).rows == 1_000


def test_one_that_is_more_urgent_itself_is_not_cut() -> None:
    hurried = replace(BULK, start_deadline=0.1)
    assert cut_for_urgent(hurried, 100_000, 0.0, [Start(0.55, "urgent")], ends=[]).rows == 100_000


def test_stages_that_are_as_urgent_do_not_make_way_for_each_other() -> None:
    scheduler = Scheduler(Llf(), 1)
    # Just before either would have to start with its reserve left: a turn of the one ends after that.
    for name, start in (("one", 0.25), ("two", 0.26)):
        scheduler.wait(replace(urgent(start, name, deferred=False), latency_seconds=0.8))
    granted = scheduler.next(0.0)
    assert isinstance(granted, Grant)
    assert (granted.stage, granted.rows) == ("one", 10)


def test_one_with_a_far_target_makes_way_for_one_that_keeps_less_in_reserve() -> None:
    # It has to start later, but would keep a second, so that less its reserve it has to start sooner.
    patient = replace(BULK, start_deadline=1.6, latency_seconds=10.0)
    cut = cut_for_urgent(patient, 100_000, 0.0, [Start(0.7, "urgent", 0.05, reserve=0.2)], ends=[])
    assert (cut.urgent, cut.end_by) == ("urgent", 0.7)


def test_a_grain_cuts_a_turn_but_lets_it_get_somewhere() -> None:
    assert cut_to_grain(BULK, 100_000, 0.25) == 20_000
    assert cut_to_grain(BULK, 100_000, inf) == 100_000
    assert cut_to_grain(BULK, 100_000, 0.01) == 5_000


def test_the_scheduler_cuts_holds_and_counts_what_overran() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.wait(BULK)
    scheduler.wait(urgent(SAFETY * 0.55, ready=SAFETY * 0.55))
    granted = scheduler.next(0.0)
    assert isinstance(granted, Grant)
    assert (granted.stage, granted.rows) == ("bulk", 50_000)
    assert "cut so that urgent can start in time" in granted.reason
    scheduler.finished("bulk", 0.8)
    assert (scheduler.cuts.made, scheduler.cuts.overran) == (1, 1)


def test_a_slot_stays_free_for_an_urgent_stage_where_no_sensible_turn_fits() -> None:
    scheduler = Scheduler(Llf(), slots=1, patience_seconds=30.0)
    scheduler.wait(BULK)
    soon = urgent(0.06)
    assert soon.context is not None
    scheduler.wait(replace(soon, context=replace(soon.context, time=0.05)))
    held = scheduler.next(0.0)
    assert isinstance(held, Hold)
    assert held.until == 0.06
    # Unless the patient one has waited too long.
    scheduler.wait(replace(urgent(30.05), ready_since=30.0))
    granted = scheduler.next(30.0)
    assert isinstance(granted, Grant)
    assert granted.stage == "bulk"
    assert "its patience was over" in granted.reason


def test_a_hold_is_never_until_a_time_that_is_past() -> None:
    """Whoever looks again then would look at once, and find the same, for as long as nothing changes."""
    scheduler = Scheduler(Llf(), slots=2)
    scheduler.wait(replace(BULK, name="other"))
    assert isinstance(scheduler.next(1.0), Grant)
    for name in "abcd":
        # Windows that should be complete by now: their turns, one after the other, would have begun at 0.8.
        scheduler.expect(name, Start(1.4, name, 0.3, ready=0.95, lapses=1.8))
    scheduler.wait(BULK)
    held = scheduler.next(1.2)
    assert isinstance(held, Hold)
    assert held.reason.endswith("must start: a slot stays free for that")
    assert held.until > 1.2


def test_work_waits_for_more_rows_only_while_more_may_come() -> None:
    scheduler = Scheduler(Llf(), slots=2)
    window = replace(urgent(5.0, "window", deferred=True), rows_waiting=10, fixed_seconds=0.1)
    scheduler.wait(window)
    assert isinstance(scheduler.next(1.0), Hold)
    scheduler.draining = True
    granted = scheduler.next(1.0)
    assert isinstance(granted, Grant)
    assert granted.rows == 10


def test_work_for_a_window_that_is_not_complete_waits_while_other_work_can_run() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    window = replace(urgent(5.0, "window", deferred=True), row_seconds=0.1)
    scheduler.wait(window)
    scheduler.wait(replace(BULK, rows_waiting=10))
    first, second = scheduler.next(1.0), None
    assert isinstance(first, Grant)
    assert first.stage == "bulk"
    scheduler.finished("bulk", 1.1)
    second = scheduler.next(1.1)
    assert isinstance(second, Grant)
    assert second.stage == "window"


@pytest.mark.parametrize(
    ("target", "starts_by", "waits"), [(7200.0, 7000.0, True), (None, 3600.0, False), (7200.0, 15.0, False)]
)
def test_few_rows_wait_for_more_where_a_target_leaves_time(
    target: float | None, starts_by: float, waits: bool
) -> None:
    scheduler = Scheduler(Llf(), slots=1)
    few = replace(BULK, rows_waiting=10, latency_seconds=target, start_deadline=starts_by)
    scheduler.wait(few)
    assert isinstance(scheduler.next(1.0), Hold) == waits
    scheduler.wait(replace(few, rows_waiting=100_000))
    assert waits == isinstance(scheduler.next(1.1), Grant)


def test_costs_of_a_few_cold_turns_keep_no_stage_from_running() -> None:
    scheduler = Scheduler(Llf(), slots=1, grain_seconds=1.0)
    scheduler.expect("urgent", Start(0.5, "urgent"))
    cold = replace(BULK, fixed_seconds=4.0)
    scheduler.wait(cold)
    assert isinstance(scheduler.next(0.0), Hold)
    scheduler.wait(replace(cold, trusted=False))
    assert isinstance(scheduler.next(0.0), Grant)


def test_few_rows_of_a_window_that_is_not_complete_wait_for_more_even_in_idle_slots() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    window = urgent(5.0, "window", deferred=True)
    assert window.fixed_seconds > window.row_seconds * window.rows_waiting
    scheduler.wait(window)
    held = scheduler.next(window.ready_since + 0.1)
    assert isinstance(held, Hold)
    assert held.until == window.ready_since + PUT_OFF_SECONDS
    granted = scheduler.next(held.until)
    assert isinstance(granted, Grant)
    assert granted.stage == "window"


def test_rows_that_wait_for_more_wait_no_longer_than_patience() -> None:
    scheduler = Scheduler(Llf(), slots=1, patience_seconds=0.5)
    scheduler.wait(urgent(5.0, "window", deferred=True))
    held = scheduler.next(0.1)
    assert isinstance(held, Hold)
    assert held.until == 0.5
    assert isinstance(scheduler.next(held.until), Grant)


def test_a_turn_is_cut_for_the_right_one_of_many() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    for number in range(200):
        # All but one far off; some of them wait a second time, with another deadline.
        scheduler.wait(urgent(50.0 + number, f"far-{number}"))
        scheduler.wait(urgent(0.3 if number % 7 else 60.0, f"far-{number}"))
        scheduler.wait(urgent(50.0 + number, f"far-{number}"))
    scheduler.wait(urgent(SAFETY * 0.55, "near", ready=SAFETY * 0.55))
    scheduler.wait(BULK)
    granted = scheduler.next(0.0)
    assert isinstance(granted, Grant)
    assert (granted.stage, granted.rows) == ("bulk", 50_000)
    assert "cut so that near can start in time" in granted.reason


@pytest.mark.parametrize("policy", [Llf(), Edf(), Sjf(), TokenShare(), BatchIt()], ids=repr)
@given(
    turns=st.lists(st.floats(0.05, 2.0), min_size=2, max_size=8),
    patience=st.floats(1.0, 20.0),
    slots=st.integers(1, 3),
    deferred=st.booleans(),
    fixed=st.sampled_from([0.0, 0.05, 5.0]),
)
def test_no_stage_waits_longer_than_the_bound_under_overload(
    policy: Policy, turns: list[float], patience: float, slots: int, deferred: bool, fixed: float
) -> None:
    """All stages always have rows, and one has by far the latest deadline.

    Its profile may say that no turn of it fits before one that is always expected soon, and its rows may be
    for a window that is not complete.
    """
    scheduler = Scheduler(policy, slots=slots, patience_seconds=patience)
    bound = patience + len(turns) * max(turns)

    def again(number: int, now: float) -> StageView:
        due, late = now - 100.0 if number else now + 1e6, deferred and not number
        context = PriorityContext(str(number), 0.0, due, 0.0, now, 0.8, late)
        return StageView(
            str(number), "p", 10, ready_since=now, oldest_arrival=now, context=context, start_deadline=due,
            latency_seconds=7200.0, fixed_seconds=fixed,
        )  # fmt: skip

    for number in range(len(turns)):
        scheduler.wait(again(number, 0.0))
    now, running, waited = 0.0, {}, []
    for _ in range(300):
        scheduler.expect("expected", Start(now + 0.1, "expected"))
        while isinstance(granted := scheduler.next(now), Grant):
            running[granted.stage] = now + turns[int(granted.stage)]
            waited.append(granted.waited_seconds)
        if not running or granted.until < min(running.values()):
            now = granted.until
            continue
        name = min(running, key=lambda each: running[each])
        now = running.pop(name)
        scheduler.finished(name, now)
        scheduler.wait(again(int(name), now))
    assert max(waited) <= bound


def test_without_patience_the_latest_deadline_waits_for_ever() -> None:
    """What the bound is there for."""
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.wait(replace(BULK, start_deadline=inf))
    for turn in range(100):
        context = PriorityContext("u", 0.0, -1.0, 0.0, 0.0, 0.8)
        scheduler.wait(replace(urgent(1.0), context=context, start_deadline=-1.0))
        granted = scheduler.next(float(turn))
        assert isinstance(granted, Grant)
        assert granted.stage == "urgent"
        scheduler.finished("urgent", float(turn))


def test_policies_without_contexts_take_no_notice_of_them() -> None:
    scheduler = Scheduler(Fifo(), slots=1)
    scheduler.wait(replace(urgent(5.0), ready_since=1.0))
    scheduler.wait(replace(BULK, ready_since=2.0))
    granted = scheduler.next(3.0)
    assert isinstance(granted, Grant)
    assert granted.stage == "urgent"


def test_a_turn_much_larger_than_any_seen_is_not_trusted_to_the_profile() -> None:
    unknown = replace(BULK, rows_waiting=20_000_000, rows_seen=0, fixed_seconds=0.0, row_seconds=0.0)
    assert cut_to_grain(unknown, 20_000_000, 1.0) == 100_000
    same_sizes = replace(unknown, rows_seen=50_000, fixed_seconds=0.1)
    assert cut_to_grain(same_sizes, 20_000_000, 1.0) == 200_000
    assert cut_to_grain(unknown, 20_000_000, inf) == 20_000_000
    slow = replace(unknown, rows_seen=20_000, fixed_seconds=4.0)
    assert cut_to_grain(slow, 20_000_000, 0.5) == 5_000
    assert cut_to_grain(replace(slow, fixed_seconds=2.0), 20_000_000, 1.0) == 10_000
    assert cut_to_grain(replace(slow, rows_seen=120), 120, 1.0) == 120


def test_a_stage_that_is_alone_takes_longer_turns_as_long_as_no_other_is_known() -> None:
    scheduler = Scheduler(Llf(), slots=2, grain_seconds=1.0)
    much = replace(BULK, rows_waiting=5_000_000, rows_seen=2_000_000)

    def rows(view: StageView) -> int:
        scheduler.wait(view)
        granted = scheduler.next(1.0)
        assert isinstance(granted, Grant)
        scheduler.finished(view.name, 1.0)
        return granted.rows

    assert rows(much) == 995_000
    assert rows(replace(much, latency_seconds=20.0)) == 195_000
    assert rows(replace(much, latency_seconds=2.0)) == 95_000
    assert rows(replace(much, rows_seen=10_000)) == 160_000
    scheduler.expect("idle", None)
    assert rows(much) == 95_000
    scheduler.forget("idle")
    scheduler.withdraw("idle")
    assert rows(much) == 995_000
    scheduler.expect("expected", Start(1000.0, "expected"))
    assert rows(much) == 95_000


def test_a_slot_is_kept_for_a_stage_that_is_expected_though_nothing_of_it_waits() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.expect("urgent", Start(SAFETY * 0.55, "urgent"))
    scheduler.wait(BULK)
    granted = scheduler.next(0.0)
    assert isinstance(granted, Grant)
    assert granted.rows == 50_000
    scheduler.finished("bulk", 0.5)
    scheduler.expect("urgent", None)
    scheduler.wait(replace(BULK, ready_since=0.5))
    granted = scheduler.next(0.5)
    assert isinstance(granted, Grant)
    assert granted.rows == 100_000


def test_a_stage_that_was_blocked_has_not_waited_since_before_its_last_turn() -> None:
    scheduler = Scheduler(Llf(), slots=1, patience_seconds=30.0)
    scheduler.wait(BULK)
    scheduler.next(0.0)
    scheduler.finished("bulk", 100.0)
    scheduler.withdraw("bulk")
    scheduler.wait(BULK)
    scheduler.wait(replace(urgent(101.5, deferred=False), ready_since=101.0))
    granted = scheduler.next(101.0)
    assert isinstance(granted, Grant)
    assert granted.stage == "urgent"


def test_a_turn_on_several_slots_has_a_row_for_each_however_long_rows_take() -> None:
    stage = StageView("s", "p", 50, 0.0, 0.0, slots=7, fixed_seconds=0.05, row_seconds=0.9, rows_seen=2)
    assert cut_to_grain(stage, 50, 0.5) == 7
    assert cut_to_grain(stage, 3, 0.5) == 3


def test_a_turn_that_should_have_ended_counts_as_no_free_slot() -> None:
    scheduler = Scheduler(Llf(), slots=2)
    half = replace(BULK, fixed_seconds=0.05, row_seconds=0.45 / 100_000, name="half")
    scheduler.wait(half)
    assert isinstance(scheduler.next(0.0), Grant)
    # It was to end at 0.5, or at 0.65 at the latest.
    scheduler.wait(replace(BULK, ready_since=0.7))
    scheduler.expect("urgent", Start(1.0, "urgent"))
    granted = scheduler.next(0.7)
    assert isinstance(granted, Grant)
    assert "cut so that urgent can start in time" in granted.reason
    assert SAFETY * turn_seconds(BULK, granted.rows) <= 0.3 + 1e-6


def test_a_turn_that_took_other_rows_than_it_was_granted_ends_when_those_are_done() -> None:
    for rows, granted_rows in ((40_000, 100_000), (90_000, 70_000)):
        scheduler = Scheduler(Llf(), slots=2)
        scheduler.wait(replace(BULK, name="other", rows_waiting=50_000))
        assert isinstance(scheduler.next(0.0), Grant)
        scheduler.took("other", rows)
        scheduler.wait(BULK)
        scheduler.expect("urgent", Start(SAFETY * 0.75, "urgent"))
        granted = scheduler.next(0.0)
        assert isinstance(granted, Grant)
        assert granted.rows == granted_rows


def test_a_stage_whose_first_turns_were_cold_is_known_better_after_a_small_one() -> None:
    """One slot, and an urgent turn of 50 ms each second, which may begin 0.1 s late."""
    profiler = Profiler()
    for rows in (1000, 10_000, 1000, 10_000, 1000, 10_000):
        profiler.learn(turn_record(rows, 0.85 + 1e-5 * rows))
    scheduler = Scheduler(Llf(), slots=1, patience_seconds=30.0, grain_seconds=1.0)
    now, second, late, bulk_seconds = 0.0, 1, 0, 0.0
    while now < 10.0:
        if now >= second:
            scheduler.expect("urgent", None)
            scheduler.wait(replace(urgent(second + 0.1, deferred=False), ready_since=float(second)))
        else:
            scheduler.expect("urgent", Start(second + 0.1, "urgent"))
        known = profiler.profile
        assert known is not None
        assert known.trusted
        scheduler.wait(replace(BULK, fixed_seconds=known.fixed_seconds, row_seconds=known.row_seconds,
                               rows_seen=known.most_rows, rows_waiting=10_000_000))  # fmt: skip
        decision = scheduler.next(now)
        if not isinstance(decision, Grant):
            now = min(decision.until, second if now < second else inf)
            continue
        seconds = 0.05 + 1e-5 * decision.rows
        if decision.stage == "urgent":
            late += now > second + 0.1
            second, seconds = second + 1, 0.05
        else:
            bulk_seconds += seconds
            profiler.learn(turn_record(decision.rows, seconds))
        now += seconds
        scheduler.finished(decision.stage, now)
    assert bulk_seconds > 5.0
    assert late <= 1


def turn_record(rows: int, seconds: float) -> TurnRecord:
    return TurnRecord("bulk", "p", 1, "direct", 1, 0.0, seconds, rows, rows, 0.0, 0.0, seconds)


def test_small_turns_that_teach_nothing_become_rarer() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    slow = replace(BULK, fixed_seconds=4.0)
    tried = []
    for tenth in range(300):
        now = tenth / 10
        scheduler.expect("urgent", Start(now + 0.5, "urgent"))
        scheduler.wait(replace(slow, ready_since=now))
        granted = scheduler.next(now)
        if isinstance(granted, Grant):
            assert granted.rows == 5_000
            assert granted.reason.endswith("few rows, as its turns may be shorter than its profile says")
            tried.append(now)
            scheduler.finished("bulk", now)
    assert tried == pytest.approx([2.0, 6.1, 14.2])


def test_a_starved_turn_that_makes_another_late_is_no_longer_than_makes_sense() -> None:
    scheduler = Scheduler(Llf(), slots=1, patience_seconds=30.0, grain_seconds=1.0)
    scheduler.wait(BULK)
    scheduler.expect("urgent", Start(30.05, "urgent"))
    granted = scheduler.next(30.0)
    assert isinstance(granted, Grant)
    assert granted.rows == 5_000  # as much time for rows as a turn takes without any


def test_who_has_waited_for_more_rows_long_enough_is_not_behind_those_that_still_wait() -> None:
    """An urgent window always has a few rows that are not worth a turn; the patient stage is due."""
    scheduler = Scheduler(Llf(), slots=1, patience_seconds=30.0)
    scheduler.wait(replace(BULK, rows_waiting=10, latency_seconds=7200.0))
    now, until = 0.0, inf
    for tenth in range(1, 110):
        now = tenth / 10
        scheduler.wait(replace(urgent(now + 1.0), ready_since=now))
        decision = scheduler.next(now)
        if isinstance(decision, Grant):
            break
        until = decision.until
    assert (now, until) == (10.0, 10.0)
    assert isinstance(decision, Grant)
    assert decision.stage == "bulk"


def test_where_the_first_in_line_does_not_fit_the_next_that_does_runs() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.expect("urgent", Start(0.5, "urgent"))
    scheduler.wait(replace(BULK, name="long", fixed_seconds=0.45))
    scheduler.wait(replace(BULK, name="also long", fixed_seconds=0.46))
    scheduler.wait(replace(BULK, name="short", fixed_seconds=0.1))
    granted = scheduler.next(0.0)
    assert isinstance(granted, Grant)
    assert granted.stage == "short"
    assert "cut so that urgent can start in time" in granted.reason


def complete_window(now: float) -> StageView:
    context = replace(BULK.context, complete=True) if BULK.context else None
    return replace(BULK, rows_waiting=10, latency_seconds=7200.0, ready_since=now, context=context)


def test_the_result_of_a_complete_window_leaves_at_once_unless_slots_are_scarce() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.wait(complete_window(0.1))
    assert isinstance(scheduler.next(0.1), Grant)
    scheduler.finished("bulk", 20.0)
    scheduler.wait(complete_window(20.0))
    held = scheduler.next(20.0)
    assert isinstance(held, Hold)
    assert held.until == 30.0
    # The slot was idle meanwhile.
    scheduler.wait(complete_window(23.0))
    assert isinstance(scheduler.next(23.0), Grant)


def test_untokened_work_runs_in_slots_that_would_be_idle_however_few_rows_it_has() -> None:
    scheduler = Scheduler(TokenShare(), slots=1, patience_seconds=30.0)
    context = PriorityContext("m", inf, 0.0, 0.0, 0.0, 0.8, deferred=True)
    scheduler.wait(replace(BULK, rows_waiting=10, context=context))
    assert isinstance(scheduler.next(0.1), Grant)


def test_one_slot_does_several_urgent_turns_one_after_the_other() -> None:
    four = [Start(SAFETY * 0.9, name, 0.05, ready=0.6) for name in "abcd"]
    # Free from 0.9 on, the other slot does the last of them at 1.095.
    assert cut_for_urgent(BULK, 100_000, 0.0, four, ends=[0.9]).rows == 100_000
    late = cut_for_urgent(BULK, 100_000, 0.0, four, ends=[1.1])
    assert (late.rows < 100_000, late.urgent) == (True, "b")
    # Alone, the slot must be free early enough for all four.
    alone = cut_for_urgent(BULK, 100_000, 0.0, four, ends=[])
    assert alone.end_by == pytest.approx(SAFETY * 0.9 - 3 * 0.05)


def test_a_window_that_should_be_complete_and_is_not_is_still_made_way_for() -> None:
    start = Start(0.6, "urgent", 0.05, ready=0.1, lapses=0.9)
    # It can be complete now at the earliest, and has its laxity from then on.
    assert start.seen(0.0) == start
    assert start.seen(0.5) == Start(pytest.approx(1.0), "urgent", 0.05, 0.5, 0.9)
    assert start.seen(0.9) is None
    assert Start(0.6, "late").seen(0.6) is None
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.expect("urgent", Start(0.6, "urgent", 0.05, ready=0.1, lapses=0.9))
    scheduler.wait(BULK)
    granted = scheduler.next(0.7)
    assert isinstance(granted, Grant)
    assert SAFETY * turn_seconds(BULK, granted.rows) == pytest.approx(0.5, abs=1e-4)


def test_the_next_window_of_a_stage_in_a_turn_is_made_way_for() -> None:
    scheduler = Scheduler(Llf(), slots=2)
    scheduler.wait(urgent(0.3, deferred=False))
    assert isinstance(scheduler.next(0.0), Grant)
    # The slot of its turn is soon free, but another stage needs that.
    scheduler.expect("other", Start(SAFETY * 0.5, "other"))
    scheduler.wait(urgent(SAFETY * 0.55, deferred=False))
    scheduler.wait(BULK)
    granted = scheduler.next(0.0)
    assert isinstance(granted, Grant)
    assert granted.rows == 50_000


def held_or_granted(scheduler: Scheduler, now: float) -> tuple[str, int]:
    decision = scheduler.next(now)
    return ("held", 0) if isinstance(decision, Hold) else (decision.stage, decision.rows)


def windows(count: int, ready: float) -> list[Start]:
    return [Start(ready + 2.5, f"w{number}", 0.1, ready=ready, lapses=ready + 3.0) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "ready", "rows"), [(1, 0.55, 100_000), (2, 0.55, 50_000), (4, 0.35, 30_000)]
)
def test_a_patient_turn_ends_before_windows_are_ready_for_which_no_other_slot_is_free(
    count: int, ready: float, rows: int
) -> None:
    starts = windows(count, SAFETY * ready)
    assert cut_for_urgent(BULK, 100_000, 0.0, starts, ends=[0.0]).rows == 100_000
    assert cut_for_room(BULK, 100_000, 0.0, starts, ends=[0.0]).rows == rows


def test_it_is_held_for_a_moment_if_that_leaves_no_sensible_turn_and_then_goes_by_deadlines() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.wait(BULK)
    for now, found in ((0.0, ("held", 0)), (0.45, ("held", 0)), (0.5, ("bulk", 100_000))):
        # Others are always ready in a moment: with room for all of them there would never be a turn.
        for window in windows(2, now + 0.05):
            scheduler.expect(window.name, window)
        assert held_or_granted(scheduler, now) == found


def test_a_hold_for_room_ends_with_that_time_though_nothing_happens_then() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.wait(replace(BULK, fixed_seconds=1.0, row_seconds=5e-6))
    scheduler.expect("window", Start(3.5, "window", 0.05, ready=1.9, lapses=5.0))
    held = scheduler.next(0.0)
    assert isinstance(held, Hold)
    assert held.until == 0.5
    assert held_or_granted(scheduler, 0.5) == ("bulk", 100_000)


def test_a_stage_that_is_behind_or_starves_makes_no_room() -> None:
    behind = Scheduler(Llf(), slots=1, grain_seconds=0.55)
    behind.wait(replace(BULK, rows_waiting=201_000))
    starved = Scheduler(Llf(), slots=1, patience_seconds=30.0)
    starved.wait(replace(BULK, ready_since=-30.0))
    for scheduler, rows in ((behind, 50_000), (starved, 100_000)):
        scheduler.expect("window", windows(1, 0.05)[0])
        assert held_or_granted(scheduler, 0.0) == ("bulk", rows)


def test_where_slots_are_scarce_a_patient_turn_only_goes_by_deadlines() -> None:
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.wait(replace(BULK, name="other"))
    assert held_or_granted(scheduler, 0.0) == ("other", 100_000)
    scheduler.finished("other", 10.0)
    scheduler.wait(replace(BULK, ready_since=10.0))
    for window in windows(2, 10.05):
        scheduler.expect(window.name, window)
    assert held_or_granted(scheduler, 10.0) == ("bulk", 100_000)


def test_nothing_is_held_for_a_window_that_should_have_been_complete_long_ago() -> None:
    late = Start(1.0, "late", 0.05, ready=0.0, lapses=2.0)
    assert late.seen_soon(0.05) == Start(pytest.approx(1.05), "late", 0.05, 0.05, 2.0)
    assert late.seen_soon(0.5) == Start(pytest.approx(1.5), "late", 0.05, -inf, 2.0)
    scheduler = Scheduler(Llf(), slots=1)
    scheduler.expect("late", late)
    scheduler.expect("as late", late._replace(name="as late"))
    scheduler.wait(BULK)
    assert held_or_granted(scheduler, 0.05) == ("held", 0)
    assert held_or_granted(scheduler, 0.35)[0] == "bulk"
