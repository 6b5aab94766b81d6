from __future__ import annotations

from penstock.plan.arrival_history import DAY_SECONDS, ArrivalHistory


def test_rows_are_counted_by_second_however_often_it_is_looked() -> None:
    history = ArrivalHistory()
    for now, rows in ((10.0, 100), (10.4, 130), (11.1, 150), (11.9, 170), (14.2, 230)):
        history.look(now, {"read": rows})
    # What came before the first look is of no second; 20 and 60 rows came in the three seconds to 14.
    assert history.counts == [50.0, 80 / 3, 80 / 3, 80 / 3]


def test_a_stage_that_starts_anew_and_one_that_is_new_take_nothing_back() -> None:
    history = ArrivalHistory()
    history.look(0.0, {"read": 500})
    history.look(1.0, {"read": 10})
    history.look(2.0, {"read": 30, "other": 1000})
    history.look(3.0, {"read": 30, "other": 1007})
    assert history.counts == [0.0, 20.0, 7.0]


def test_the_time_that_a_machine_slept_is_not_taken_for_a_quiet_one() -> None:
    history = ArrivalHistory()
    for now, rows in ((0.0, 0), (1.0, 10), (5000.0, 20), (5001.0, 50)):
        history.look(now, {"read": rows})
    assert history.counts == [10.0, 30.0]


def test_no_more_than_a_day_is_kept() -> None:
    history = ArrivalHistory()
    history.restore([1.0] * DAY_SECONDS)
    history.look(0.0, {"read": 0})
    history.look(1.0, {"read": 5})
    assert len(history) == DAY_SECONDS
    assert history.counts[-1] == 5.0
    assert history.fresh == [5.0]
