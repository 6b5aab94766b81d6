import json

import pytest

from penstock.scheduling import DecisionLog, Grant, Hold, LongestQueue, StageView, decision_from_json, render
from penstock.scheduling.decisions import Choice, DecisionError

NOON = 1_700_049_600.0  # 12:00:00 UTC


def choice(rows: int = 1200, slots: int = 1, free: int = 2) -> Choice:
    view = StageView("a", "p", rows, ready_since=0.0, oldest_arrival=0.0, slots=slots, flush=rows == 0)
    return Choice(LongestQueue(), view, waited_seconds=0.314, free_slots=free, pool_slots=2)


def grant(stage: str = "a", at: float = NOON, why: object = "first") -> Grant:
    return Grant(stage, rows=1200, slots=1, at=at, waited_seconds=0.314, why=why)


@pytest.mark.parametrize(
    ("why", "sentence"),
    [
        (choice(), "longest queue: 1,200 rows; waited 0.31 s; 2 of 2 slots free"),
        (choice(rows=1), "longest queue: 1 row; waited 0.31 s; 2 of 2 slots free"),
        (choice(rows=0, free=1), "longest queue: a flush; waited 0.31 s; 1 of 2 slots free"),
        (
            choice(slots=4),
            "longest queue: 1,200 rows; waited 0.31 s; 2 of 2 slots free; needs 4 slots, the pool has 2",
        ),
    ],
)
def test_a_grant_gives_its_reason_as_a_sentence(why: Choice, sentence: str) -> None:
    assert grant(why=why).reason == sentence


@pytest.mark.parametrize(
    "decision", [grant(why=choice()), Hold("no stage waits", NOON), Hold("wide", 1.5, "b")]
)
def test_a_decision_survives_json(decision: Grant | Hold) -> None:
    read = decision_from_json(json.loads(json.dumps(decision.to_json())))
    assert read.to_json() == decision.to_json()
    assert type(read) is type(decision)


def test_a_stored_decision_of_another_kind_is_refused() -> None:
    with pytest.raises(DecisionError) as error:
        decision_from_json({"decision": "maybe"})
    assert (
        str(error.value)
        == "a stored decision must be a 'grant' or a 'hold', got 'maybe': it cannot be explained"
    )


def test_decisions_are_shown_as_aligned_lines() -> None:
    shown = render(
        [
            grant("alerts.parse", why=choice()),
            Hold("needs 2 slots, 1 of 2 is free", NOON + 0.0015, "b"),
            Hold("no stage waits", NOON + 61.5),
        ]
    )
    assert [line.rstrip() for line in shown.splitlines()] == [
        "12:00:00.000  grant  alerts.parse  1,200 rows on 1 slot "
        "(longest queue: 1,200 rows; waited 0.31 s; 2 of 2 slots free)",
        "12:00:00.001  hold   b             needs 2 slots, 1 of 2 is free",
        "12:01:01.500  hold                 no stage waits",
    ]
    assert render([]) == ""


def test_the_log_keeps_the_last_decisions_only() -> None:
    log = DecisionLog(maxlen=3)
    for second in range(10):
        log.add(grant(at=float(second)))
    assert len(log) == 3
    assert [decision.at for decision in log.recent()] == [7.0, 8.0, 9.0]


def test_the_log_gives_the_last_decisions_on_one_stage() -> None:
    log = DecisionLog()
    for second in range(6):
        log.add(grant("odd" if second % 2 else "even", at=float(second)))
    log.add(Hold("needs 2 slots, 1 of 2 is free", 6.0, "odd"))
    assert [decision.at for decision in log.recent("odd", n=3)] == [3.0, 5.0, 6.0]
    assert log.recent("unknown") == ()


def test_a_hold_is_logged_when_its_reason_or_stage_changes() -> None:
    log = DecisionLog()
    for decision in (
        Hold("no stage waits", 1.0),
        Hold("no stage waits", 2.0),
        grant(at=3.0),
        Hold("no stage waits", 4.0),
        Hold("needs 2 slots, 1 of 2 is free", 5.0, "a"),
        Hold("needs 2 slots, 1 of 2 is free", 6.0, "b"),
        Hold("no stage waits", 7.0),
    ):
        log.add(decision)
    assert [decision.at for decision in log.recent()] == [1.0, 3.0, 5.0, 6.0, 7.0]


def test_decisions_are_written_as_json_objects() -> None:
    assert grant().to_json() == {
        "decision": "grant",
        "at": NOON,
        "stage": "a",
        "rows": 1200,
        "slots": 1,
        "waited_seconds": 0.314,
        "reason": "first",
    }
    hold = {"decision": "hold", "at": NOON, "stage": "", "reason": "no stage waits"}
    assert Hold("no stage waits", NOON).to_json() == hold


def test_the_log_gives_what_was_decided_after_a_moment() -> None:
    log = DecisionLog()
    for at in (1.0, 2.0, 3.0):
        log.add(Hold(f"reason {at}", at))
    assert [decision.at for decision in log.since(1.0)] == [2.0, 3.0]
    assert log.since(3.0) == ()


def test_a_log_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(DecisionError) as error:
        DecisionLog(maxlen=0)
    assert (
        str(error.value) == "a decision log must keep at least 1 decision, got 0: nothing could be explained"
    )
