from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.measure.stage_meter import MeterError, StageMeter
from penstock.measure.turns import TurnRecord

START = 1000.0


def turn(granted_at: float, finished_at: float, rows_in: int = 100, rows_out: int = 50) -> TurnRecord:
    seconds = finished_at - granted_at
    return TurnRecord(
        "s", "p", 1, "direct", 1, granted_at, finished_at, rows_in, rows_out, rows_in / 100, 0.5, seconds
    )


@dataclass
class Diary:
    """Keeps every event for ever and reads the figures off them: what a meter must agree with."""

    window_seconds: float
    busy: list[tuple[float, bool]] = field(default_factory=lambda: [(START, False)])
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    turns: list[TurnRecord] = field(default_factory=list)

    def utilisation(self, begin: float, now: float) -> float:
        busy_seconds = 0.0
        for (since, is_busy), (until, _) in zip(self.busy, [*self.busy[1:], (now, False)], strict=True):
            if is_busy:
                busy_seconds += max(min(until, now) - max(since, begin), 0.0)
        return busy_seconds / (now - begin)


steps = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "start", "finish", "abandon"]), st.floats(0.01, 40.0), st.integers(1, 500)
    ),
    min_size=1,
    max_size=40,
)


@given(steps)
def test_a_meter_agrees_with_a_diary_of_all_events(plan: list[tuple[str, float, int]]) -> None:
    meter, diary = StageMeter(START, window_seconds=60.0, bins=6), Diary(60.0)
    now, waiting, granted_at = START, 0, None
    for what, pause, rows in plan:
        now += pause
        if what == "arrive":
            waiting += rows
            meter.queue_changed(waiting, now, arrived=rows)
            diary.arrivals.append((now, rows))
        elif what == "start" and granted_at is None:
            waiting, granted_at = 0, now
            meter.turn_started(now)
            meter.queue_changed(0, now)
        elif what == "finish" and granted_at is not None:
            diary.turns.append(turn(granted_at, now, rows, rows // 2))
            meter.turn_finished(diary.turns[-1])
            granted_at = None
        elif what == "abandon" and granted_at is not None:
            meter.turn_abandoned(now)
            granted_at = None
        diary.busy.append((now, waiting > 0 or granted_at is not None))
    now += 1.5

    figures = meter.figures(now)
    begin = now - figures.seconds
    assert figures.seconds == pytest.approx(min(now - START, 60.0), abs=10.0)
    seen = [one for one in diary.turns if one.finished_at > begin + 1e-9]
    rows_in = sum(one.rows_in for one in seen)
    assert (figures.turns, figures.rows_in) == (len(seen), rows_in)
    assert figures.rows_out == sum(one.rows_out for one in seen)
    assert (figures.rows_waiting, figures.total_turns) == (waiting, len(diary.turns))
    arrived = sum(rows for at, rows in diary.arrivals if at > begin + 1e-9)
    assert figures.arrival_rows_per_second == pytest.approx(arrived / figures.seconds)
    assert figures.utilisation == pytest.approx(diary.utilisation(begin, now), abs=1e-6)
    if seen:
        turn_seconds = sum(one.turn_seconds for one in seen)
        assert figures.service_rows_per_second == pytest.approx(rows_in / turn_seconds)
        queue_seconds = sum(one.queue_seconds * one.rows_in for one in seen) / rows_in
        assert figures.queue_seconds == pytest.approx(queue_seconds)


def test_a_meter_without_events_gives_zeros() -> None:
    figures = StageMeter(START).figures(START)
    assert (figures.seconds, figures.turns, figures.utilisation) == (0.0, 0, 0.0)
    assert (figures.arrival_rows_per_second, figures.service_rows_per_second, figures.selectivity) == (
        0.0,
        0.0,
        0.0,
    )
    assert (figures.queue_seconds, figures.schedule_seconds, figures.compute_seconds) == (0.0, 0.0, 0.0)


def test_one_turn_gives_rates_times_and_selectivity() -> None:
    meter = StageMeter(START)
    meter.queue_changed(100, START + 2.0, arrived=100)
    meter.turn_started(START + 3.0)
    meter.queue_changed(0, START + 3.0)
    meter.turn_finished(turn(START + 3.0, START + 5.0))
    figures = meter.figures(START + 10.0)
    assert figures.arrival_rows_per_second == 10.0
    assert figures.service_rows_per_second == 50.0
    assert (figures.queue_seconds, figures.schedule_seconds, figures.compute_seconds) == (1.0, 0.5, 2.0)
    assert figures.selectivity == 0.5
    assert figures.utilisation == pytest.approx(0.3)  # a row waited from 2 to 3, a turn ran from 3 to 5


def test_the_slot_time_of_a_turn_counts_when_it_is_occupied() -> None:
    meter = StageMeter(START, window_seconds=10.0, bins=10)
    meter.turn_started(START + 5.0, slots=2)
    assert meter.figures(START + 8.0).slot_seconds == pytest.approx(6.0)
    meter.turn_finished(replace(turn(START + 5.0, START + 15.0), slots=2))
    figures = meter.figures(START + 15.0)
    assert figures.slot_seconds == pytest.approx(2 * figures.seconds)
    assert figures.service_rows_per_slot_second == pytest.approx(100 / 20.0)
    assert figures.service_rows_per_second == pytest.approx(100 / 10.0)
    meter.turn_started(START + 16.0)
    meter.turn_abandoned(START + 18.0)
    assert meter.figures(START + 40.0).slot_seconds == 0.0


def test_the_figures_since_a_snapshot_are_those_of_the_time_after_it() -> None:
    meter = StageMeter(START, window_seconds=10.0, bins=10)
    meter.queue_changed(300, START, arrived=300)
    meter.turn_started(START + 1.0)
    meter.turn_finished(turn(START + 1.0, START + 2.0))
    meter.queue_changed(0, START + 2.0)
    earlier = meter.snapshot(START + 5.0)
    assert meter.figures_since(earlier, START + 5.0).seconds == 0.0
    meter.queue_changed(80, START + 35.0, arrived=80)
    meter.turn_started(START + 50.0, slots=2)
    meter.queue_changed(0, START + 50.0)
    meter.turn_finished(turn(START + 50.0, START + 55.0, rows_in=80, rows_out=20))
    figures = meter.figures_since(earlier, START + 65.0)
    assert (figures.seconds, figures.turns, figures.rows_in, figures.rows_out) == (60.0, 1, 80, 20)
    assert figures.arrival_rows_per_second == pytest.approx(80 / 60)
    assert figures.utilisation == pytest.approx(20 / 60)
    assert figures.slot_seconds == 10.0
    assert (figures.selectivity, figures.compute_seconds) == (0.25, 5.0)
    assert figures.total_rows_in == 180


def test_a_row_that_waits_makes_a_stage_busy_without_a_turn() -> None:
    meter = StageMeter(START)
    meter.queue_changed(1, START, arrived=1)
    assert meter.figures(START + 20.0).utilisation == 1.0


def test_rows_given_back_are_no_arrivals() -> None:
    meter = StageMeter(START)
    meter.queue_changed(100, START, arrived=100)
    meter.turn_started(START)
    meter.queue_changed(0, START)
    meter.turn_abandoned(START + 5.0)
    meter.queue_changed(100, START + 5.0)
    figures = meter.figures(START + 10.0)
    assert (figures.rows_waiting, figures.arrival_rows_per_second, figures.turns) == (100, 10.0, 0)
    assert figures.utilisation == 1.0


def test_the_means_are_those_of_a_row_and_not_of_a_turn() -> None:
    meter = StageMeter(START)
    meter.turn_finished(turn(START, START + 1.0, rows_in=100))
    meter.turn_finished(turn(START + 1.0, START + 2.0, rows_in=300))
    assert meter.figures(START + 2.0).queue_seconds == pytest.approx((100 * 1.0 + 300 * 3.0) / 400)


def test_what_fell_out_of_the_window_stays_in_the_totals() -> None:
    meter = StageMeter(START, window_seconds=10.0, bins=10)
    meter.queue_changed(100, START + 0.5, arrived=100)
    meter.queue_changed(0, START + 0.6)
    meter.turn_finished(turn(START, START + 1.0))
    figures = meter.figures(START + 86_400.0)
    assert (figures.turns, figures.rows_in, figures.arrival_rows_per_second) == (0, 0, 0.0)
    assert (figures.total_turns, figures.total_rows_in, figures.total_rows_out) == (1, 100, 50)
    assert figures.utilisation == 0.0
    assert figures.seconds == pytest.approx(10.0)


def test_a_late_event_counts_at_the_last_time_known() -> None:
    meter = StageMeter(START)
    meter.queue_changed(0, START + 10.0)
    meter.queue_changed(5, START + 4.0, arrived=5)
    assert meter.figures(START + 20.0).utilisation == pytest.approx(0.5)


def test_asking_twice_gives_the_same_figures() -> None:
    meter = StageMeter(START)
    meter.queue_changed(7, START + 3.0, arrived=7)
    assert meter.figures(START + 9.0) == meter.figures(START + 9.0)


@pytest.mark.parametrize(("seconds", "bins"), [(0.0, 60), (60.0, 0)])
def test_a_meter_without_a_window_is_refused(seconds: float, bins: int) -> None:
    with pytest.raises(MeterError) as error:
        StageMeter(START, window_seconds=seconds, bins=bins)
    assert str(error.value) == (
        f"a meter must have a positive window and at least 1 bin, got {seconds} s in {bins} bins: "
        "no rate could be told"
    )
