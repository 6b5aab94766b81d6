from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.scheduling.contexts import transform
from penstock.scheduling.progress import Heard, ProgressMap, Sources, SourcesRule

EPOCH = 1.8e9


@given(micros=st.integers(0, 10**11), slide=st.sampled_from([0.1, 0.5, 1.0, 5.0, 10.0, 60.0]))
def test_the_frontier_is_the_first_step_of_the_window_after_a_message(micros: int, slide: float) -> None:
    p = EPOCH + micros / 1e6
    frontier = transform(p, slide)
    assert frontier > p
    assert frontier - p <= slide + 1e-6
    assert round(frontier * 1e6) % round(slide * 1e6) == 0


def test_a_message_of_a_stage_with_steps_as_long_triggers_at_once() -> None:
    assert transform(20.0, 10.0, upstream_slide=10.0) == 20.0
    assert transform(20.0, 10.0, upstream_slide=1.0) == 30.0


@given(
    delay=st.floats(0.0, 100.0),
    speed=st.floats(0.2, 5.0),
    ahead=st.sampled_from([0.1, 0.5, 1.0, 1.5, 7.99, 8.01, 8.1, 100.0]),
    n=st.integers(2, 80),
)
def test_event_time_is_mapped_by_the_line_it_has_followed_to_the_end_of_a_step(
    delay: float, speed: float, ahead: float, n: int
) -> None:
    known = ProgressMap()
    for second in range(n):
        known.update(EPOCH + second, EPOCH + delay + second * speed)
    expected = EPOCH + delay + (n - 1 + ceil(ahead - 1e-6)) * speed
    assert known.time_of(EPOCH + n - 1 + ahead) == pytest.approx(expected, abs=1e-3)


def test_steps_are_as_long_as_most_were_whatever_a_pause_lasted() -> None:
    known = ProgressMap()
    for second in (*range(30), *range(3630, 3660)):
        known.update(EPOCH + second - 0.001, EPOCH + second)
    assert known.time_of(EPOCH + 3659.0) == pytest.approx(EPOCH + 3660.0, abs=0.01)
    known.update(EPOCH + 3660 - 0.001, EPOCH + 3660)
    assert known.time_of(EPOCH + 3660.0) == pytest.approx(EPOCH + 3661.0, abs=0.01)


@pytest.mark.parametrize("apart", [1e-5, 1e-3])
def test_rows_just_behind_the_end_of_a_step_are_in_it_and_those_just_after_in_the_next(apart: float) -> None:
    known = ProgressMap()
    for tick in range(100):
        known.update(EPOCH + tick / 10, EPOCH + tick / 10 + 0.05)
    assert known.time_of(EPOCH + 10.0) == pytest.approx(EPOCH + 10.05, abs=0.001)
    assert known.time_of(EPOCH + 10.0 + apart) == pytest.approx(EPOCH + 10.15, abs=0.001)


def test_only_the_recent_past_counts() -> None:
    known = ProgressMap()
    for second in range(100):
        known.update(second, second + 2.0)
    for second in range(100, 200):
        known.update(second, second + 7.0)
    assert known.time_of(300.0) == pytest.approx(307.0)


def test_what_cannot_be_predicted_is_not() -> None:
    assert ProgressMap().time_of(5.0) is None
    once = ProgressMap()
    once.update(5.0, 7.0)
    assert once.time_of(6.0) is None
    backwards = ProgressMap()
    for second in range(10):
        backwards.update(float(second), -float(second))
    assert backwards.time_of(20.0) is None


def test_ingestion_time_is_its_own_map() -> None:
    assert ProgressMap(ingestion=True).time_of(17.25) == 17.25


def test_the_frontier_is_the_least_of_the_sources() -> None:
    sources = Sources()
    sources.arrive("fast", 9.0, at=100.0)
    sources.arrive("slow", 4.0, at=100.5)
    sources.arrive("fast", 12.0, at=101.0)
    assert sources.arrived(101.0) == 4.0
    sources.arrive("slow", 10.0, at=102.0)
    assert sources.arrived(102.0) == 10.0
    assert sources.completed_at(4.0) == 100.5
    assert sources.completed_at(10.0) == 102.0
    assert sources.completed_at(10.1) is None


def test_windows_are_closed_over_what_was_taken_not_over_what_waits() -> None:
    sources = Sources()
    sources.arrive("a", 10.0, at=100.0)
    sources.arrive("b", 8.0, at=100.0)
    assert sources.taken(100.0) is None
    sources.take("a", 10.0)
    assert sources.taken(100.0) is None
    sources.take("b", 6.0)
    assert sources.taken(100.0) == 6.0


def test_a_source_that_is_silent_is_not_waited_for_unless_its_rows_wait() -> None:
    sources = Sources(SourcesRule(idle_seconds=10.0))
    sources.arrive("gone", 5.0, at=100.0)
    sources.arrive("alive", 5.0, at=100.0)
    sources.take("gone", 5.0)
    sources.arrive("alive", 20.0, at=111.0)
    assert sources.arrived(105.0) == 5.0
    assert sources.arrived(111.0) == 20.0
    assert sources.arrived(999.0) == 20.0
    waiting = Sources(SourcesRule(idle_seconds=10.0))
    waiting.arrive("gone", 5.0, at=100.0)
    waiting.arrive("alive", 20.0, at=111.0)
    waiting.take("alive", 20.0)
    assert waiting.taken(150.0) is None


def test_sources_that_are_expected_are_waited_for_but_not_for_ever() -> None:
    sources = Sources(SourcesRule(expected=2, idle_seconds=10.0))
    sources.arrive("first", 5.0, at=100.0)
    assert sources.arrived(109.0) is None
    assert sources.arrived(110.0) == 5.0


def test_what_was_taken_is_known_after_a_restart() -> None:
    sources = Sources()
    for name, progress in (("a", 10.0), ("b", 7.0)):
        sources.arrive(name, progress, at=100.0)
        sources.take(name, progress)
    again = Sources()
    again.restore(sources.to_json(), now=200.0)
    again.arrive("a", 30.0, at=201.0)
    again.take("a", 30.0)
    assert again.taken(201.0) == 7.0


def test_rows_that_were_passed_over_hold_the_frontier_back() -> None:
    sources = Sources()
    for least, greatest in ((0.0, 0.9), (1.0, 1.9), (2.0, 2.9)):
        sources.arrive("a", greatest, at=100.0, least=least)
    sources.take("a", 2.9, least=2.0)
    assert sources.taken(100.0) == 0.0
    sources.take("a", 0.9, least=0.0)
    assert sources.taken(100.0) == 1.0
    sources.take("a", 1.9, least=1.0)
    assert sources.taken(100.0) == 2.9


def test_silence_counts_from_when_rows_were_seen_not_from_when_they_came() -> None:
    """After an outage the queue is full of rows that came long ago."""
    sources = Sources(SourcesRule(idle_seconds=10.0))
    sources.arrive("a", 5.0, at=100.0, seen=5000.0)
    sources.arrive("b", 50.0, at=100.0, seen=5000.0)
    sources.take("a", 5.0)
    sources.take("b", 50.0)
    assert sources.taken(5001.0) == 5.0


def test_rows_that_wait_count_also_where_they_are_behind_what_was_taken() -> None:
    sources = Sources(SourcesRule(idle_seconds=10.0))
    sources.arrive("x", 10.0, at=100.0, least=0.0)
    sources.take("x", 10.0, least=0.0)
    sources.arrive("y", 60.0, at=100.0, least=0.0)
    sources.take("y", 60.0, least=0.0)
    sources.arrive("x", 9.0, at=101.0, least=7.0)
    sources.arrive("y", 61.0, at=120.0, least=60.0)
    assert sources.taken(120.0) == 7.0


def test_a_source_that_does_not_know_how_far_it_is_has_no_frontier() -> None:
    sources = Sources()
    sources.arrive("known", 10.0, at=100.0)
    sources.take("known", 10.0)
    sources.arrive("unknown", float("-inf"), at=100.0, least=3.0)
    sources.take("unknown", float("-inf"), least=3.0)
    assert sources.taken(100.0) is None


def test_nobody_is_silent_who_could_not_be_heard() -> None:
    sources = Sources(SourcesRule(idle_seconds=10.0))
    for name, progress in (("slow", 4.0), ("fast", 60.0)):
        sources.arrive(name, progress, at=100.0)
        sources.take(name, progress)
    sources.wake(200.0)
    assert sources.taken(205.0) == 4.0
    assert sources.taken(211.0) == 60.0


def test_dates_that_are_forgotten_are_not_made_up() -> None:
    sources = Sources()
    for second in range(1000):
        sources.arrive("a", float(second), at=second + 0.5)
    sources.forget_below(900.0)
    assert sources.completed_at(100.0) is None
    assert sources.completed_at(899.5) == 900.5
    for second in range(1000, 30_000):
        sources.arrive("a", float(second), at=second + 0.5)
    assert len(sources._steps) <= 8192
    assert sources.completed_at(29_999.0) == 29_999.5


def test_sources_that_have_gone_are_forgotten_and_hold_nothing_back() -> None:
    sources = Sources(SourcesRule(2, idle_seconds=10.0))
    for number in range(5000):
        at = EPOCH + number
        sources.arrive_together([Heard("stays", at, at), Heard(f"device {number}", at, at)], at)
        for name in ("stays", f"device {number}"):
            sources.take(name, at, at)
    assert len(sources.to_json()) < 600
    assert sources.taken(at) == EPOCH + 4990, "that of the slowest that was heard within ten seconds"
    assert sources.arrive_together([Heard("device 7", at + 1, at + 1)], at + 1) == EPOCH + 4991


def test_sources_with_rows_left_or_ahead_of_all_others_are_not_forgotten() -> None:
    sources = Sources(SourcesRule(idle_seconds=10.0))
    sources.arrive("waits", EPOCH, EPOCH, EPOCH)
    sources.arrive("ahead", EPOCH + 90_000, EPOCH)
    sources.take("ahead", EPOCH + 90_000)
    for number in range(2000):
        at = EPOCH + number
        sources.arrive(f"device {number}", at, at)
        sources.take(f"device {number}", at)
    assert {"waits", "ahead"} <= set(sources._arrived)
    assert sources.taken(at) is None, "of the one that waits nothing was taken"
