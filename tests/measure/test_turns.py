import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.measure.turns import NO_TURN_YET, TurnError, TurnRecord, split_times

moment = st.integers(0, 1000).map(float)

TURN = TurnRecord(
    stage="alerts.parse",
    pipeline="alerts",
    batch=7,
    kind="direct",
    slots=1,
    granted_at=100.0,
    finished_at=100.5,
    rows_in=1000,
    rows_out=900,
    queue_seconds=0.2,
    schedule_seconds=0.1,
    compute_seconds=0.5,
)


@given(moment, moment | st.just(NO_TURN_YET), moment, moment)
def test_the_three_times_are_never_negative_and_add_up_to_the_stay(
    arrival: float, last_turn_end: float, granted_at: float, stay: float
) -> None:
    visible_at = max(arrival, granted_at) + stay
    times = split_times(arrival, last_turn_end, granted_at, visible_at)
    assert min(times) >= 0.0
    assert sum(times) == visible_at - arrival


def test_a_row_that_arrives_during_a_turn_queues_until_its_end() -> None:
    assert split_times(arrival=10.0, last_turn_end=12.0, granted_at=15.0, visible_at=16.0) == (2.0, 3.0, 1.0)


def test_a_row_that_arrives_at_an_idle_stage_waits_for_the_scheduler_only() -> None:
    assert split_times(arrival=10.0, last_turn_end=4.0, granted_at=15.0, visible_at=16.0) == (0.0, 5.0, 1.0)


def test_a_row_of_the_first_turn_waits_for_the_scheduler_only() -> None:
    assert split_times(arrival=10.0, last_turn_end=NO_TURN_YET, granted_at=15.0, visible_at=16.0) == (
        0.0,
        5.0,
        1.0,
    )


def test_a_row_that_arrives_after_the_grant_has_compute_time_only() -> None:
    assert split_times(arrival=15.5, last_turn_end=12.0, granted_at=15.0, visible_at=16.0) == (0.0, 0.0, 0.5)


def test_a_result_before_its_grant_took_no_time() -> None:
    assert split_times(arrival=10.0, last_turn_end=9.0, granted_at=15.0, visible_at=14.0) == (0.0, 5.0, 0.0)


def test_a_turn_record_survives_json() -> None:
    assert TurnRecord.from_json(json.loads(json.dumps(TURN.to_json()))) == TURN


def test_a_turn_lasts_from_grant_to_end_and_never_less_than_zero() -> None:
    assert TURN.turn_seconds == 0.5
    assert replace(TURN, finished_at=99.0).turn_seconds == 0.0


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"kind": "odd"}, "a kind of 'direct' or 'held', got 'odd': no other turns exist"),
        ({"slots": 0}, "at least 1 slot, got 0: every turn occupies one"),
        ({"rows_out": -1}, "zero or more rows, got 1000 in and -1 out: rates would be wrong"),
        (
            {"queue_seconds": math.nan},
            "times of zero or more seconds, got (nan, 0.1, 0.5): means would be wrong",
        ),
    ],
)
def test_a_turn_record_that_contradicts_itself_is_refused(change: dict[str, object], text: str) -> None:
    with pytest.raises(TurnError) as error:
        TurnRecord.from_json(TURN.to_json() | change)
    assert str(error.value) == f"turn 7 of stage 'alerts.parse' must have {text}"
