from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.measure.held_back import what_held_back
from penstock.measure.minutes import StageMinute
from penstock.measure.stage_meter import StageMeter

NOTHING = StageMeter(0.0).figures(60.0)


def minute(stage: str = "p.parse", slots: int = 2, **figures: Any) -> StageMinute:
    return StageMinute(0.0, stage, slots, replace(NOTHING, **figures))


BUSY = {
    "turns": 100,
    "rows_in": 54_000,
    "rows_waiting": 18_000,
    "arrival_rows_per_second": 1200.0,
    "service_rows_per_second": 1800.0,
    "slot_seconds": 30.0,
    "utilisation": 1.0,
}
OTHERS = [
    minute("p.join", slot_seconds=48.0),
    minute("q.count", slot_seconds=24.0),
    minute("p.filter", slot_seconds=12.0),
    minute("p.publish", slot_seconds=6.0),
    minute("p.idle", slot_seconds=0.0),
]


def test_more_rows_than_turns_could_take_is_the_queue() -> None:
    told = what_held_back(
        minute(**BUSY, queue_seconds=2.4, schedule_seconds=0.3, compute_seconds=0.3), OTHERS
    )
    assert told.cause == "queue"
    assert told.sentence == (
        "p.parse was held back by its queue: of the 3.0 s a row stayed, 2.4 s (80%) it waited for turns that "
        "took other rows: 1,200 rows/s came, 900 rows/s were taken, 18,000 wait at the end "
        "(T_Q 2.4 s, T_S 300 ms, T_C 300 ms)"
    )


def test_others_that_had_the_slots_are_the_schedule_and_those_with_most_are_named() -> None:
    told = what_held_back(
        minute(**BUSY, queue_seconds=0.2, schedule_seconds=1.5, compute_seconds=0.3), OTHERS
    )
    assert told.cause == "schedule"
    assert told.sentence == (
        "p.parse was held back by the schedule: of the 2.0 s a row stayed, 1.5 s (75%) it was next and "
        "waited for a slot while others had the 2 slots: p.join 40%, q.count 20%, p.filter 10% of the time "
        "(T_Q 200 ms, T_S 1.5 s, T_C 300 ms)"
    )


def test_slots_that_stood_free_meanwhile_are_told() -> None:
    told = what_held_back(
        minute(**{**BUSY, "slot_seconds": 6.0}, schedule_seconds=9.0, compute_seconds=0.1),
        [minute("p.join", slot_seconds=30.0)],
    )
    assert told.cause == "schedule"
    assert (
        "p.join 25% of the time; the 2 slots stood free 70% of it: its window was not complete, it was "
        "paused, or the queue behind it was full (T_Q 0 ms, T_S 9.0 s, T_C 100 ms)"
    ) in told.sentence


def test_long_turns_are_the_computation() -> None:
    told = what_held_back(
        minute(**BUSY, queue_seconds=0.1, schedule_seconds=0.1, compute_seconds=0.3), OTHERS
    )
    assert told.cause == "computation"
    assert told.sentence == (
        "p.parse was held back by its computation: of the 500 ms a row stayed, 300 ms (60%) it spent in its "
        "own turn: 100 turns of 540 rows on average took 300 ms each (T_Q 100 ms, T_S 100 ms, T_C 300 ms)"
    )


def test_a_single_long_turn_is_told_as_one() -> None:
    once = {"turns": 1, "rows_in": 600, "utilisation": 0.9, "service_rows_per_second": 300.0}
    told = what_held_back(minute(**once, compute_seconds=2.0), OTHERS)
    assert "it spent in its own turn: 1 turn of 600 rows took 2.0 s (T_Q" in told.sentence


def test_a_stage_with_time_to_spare_was_held_back_by_nothing() -> None:
    told = what_held_back(
        minute(turns=60, rows_in=600, utilisation=0.1, schedule_seconds=0.02, compute_seconds=0.05), OTHERS
    )
    assert told.cause == "nothing"
    assert told.sentence == (
        "nothing held p.parse back: a row stayed 70 ms (T_Q 0 ms, T_S 20 ms, T_C 50 ms), and for 90% of the "
        "time none was there"
    )


def test_long_waits_of_a_stage_with_time_to_spare_are_told_all_the_same() -> None:
    seldom = {"turns": 2, "rows_in": 600, "utilisation": 0.2}
    told = what_held_back(minute(**seldom, schedule_seconds=5.0, compute_seconds=0.05), OTHERS)
    assert told.cause == "schedule"
    told = what_held_back(minute(**seldom, schedule_seconds=0.05, compute_seconds=5.0), OTHERS)
    assert told.cause == "computation"


def test_a_stage_that_no_row_came_to_was_held_back_by_nothing() -> None:
    told = what_held_back(minute(), OTHERS)
    assert (told.cause, told.sentence) == ("nothing", "nothing held p.parse back: no row came")


def test_rows_that_wait_without_a_turn_are_the_schedule() -> None:
    told = what_held_back(
        minute(slots=1, rows_waiting=1, utilisation=1.0), [minute("p.join", 1, slot_seconds=60.0)]
    )
    assert told.cause == "schedule"
    assert told.sentence == (
        "p.parse was held back by the schedule: 1 row waits and it got no turn while others had the slot: "
        "p.join 100% of the time"
    )


def test_a_turn_that_does_not_end_is_the_computation() -> None:
    told = what_held_back(minute(rows_waiting=300, utilisation=1.0, slot_seconds=55.0), [])
    assert told.cause == "computation"
    assert told.sentence == (
        "p.parse was held back by its computation: a turn still ran at the end of these 60.0 s; 300 rows wait"
    )


seconds = st.floats(0.0, 1000.0)
some = st.builds(
    lambda turns, rows, waiting, busy, times: minute(
        turns=turns,
        rows_in=rows if turns else 0,
        rows_waiting=waiting,
        utilisation=busy,
        service_rows_per_second=rows / 7,
        queue_seconds=times[0],
        schedule_seconds=times[1],
        compute_seconds=times[2],
        slot_seconds=min(sum(times), 120.0),
    ),
    st.integers(0, 100),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.floats(0.0, 1.0),
    st.tuples(seconds, seconds, seconds),
)


@given(some, st.lists(some, max_size=4))
def test_there_is_always_one_sentence(stage: StageMinute, others: list[StageMinute]) -> None:
    told = what_held_back(stage, others)
    assert told.sentence.count("p.parse") >= 1
    assert "\n" not in told.sentence
    assert "nan" not in told.sentence


@pytest.mark.parametrize("cause", ["queue", "schedule", "compute"])
def test_the_greatest_of_the_three_times_is_the_cause(cause: str) -> None:
    told = what_held_back(minute(**BUSY, **{f"{cause}_seconds": 3.0}), OTHERS)
    assert told.cause == {"compute": "computation"}.get(cause, cause)


def test_a_stage_that_starved_after_one_small_turn_was_held_back_by_the_schedule() -> None:
    one_turn = {"turns": 1, "rows_in": 40, "slot_seconds": 0.05, "service_rows_per_second": 800.0}
    starved = minute(**one_turn, rows_waiting=50_000, utilisation=1.0, compute_seconds=0.05)
    told = what_held_back(starved, OTHERS)
    assert told.cause == "schedule"
    assert told.sentence == (
        "p.parse was held back by the schedule: 50,000 rows wait at the end, 40 were taken, "
        "and it ran for 50 ms of 60.0 s while others had the 2 slots: p.join 40%, q.count 20%, "
        "p.filter 10% of the time"
    )
    # Rows that came at the very end had no time to wait.
    assert what_held_back(
        replace(starved, figures=replace(starved.figures, utilisation=0.1)), OTHERS
    ).cause == ("nothing")
