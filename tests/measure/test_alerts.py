"""What somebody is told of, and what not."""

from __future__ import annotations

import pytest

from penstock.measure.alerts import (
    Alert,
    AwaySeen,
    BudgetSeen,
    DiskSeen,
    SinkSeen,
    StageSeen,
    away_brokers,
    failed_pipelines,
    follow,
    full_disks,
    missed_targets,
    slow_stages,
    spent_budgets,
    stuck_stages,
)

NOW = 1000.0


def sink(in_time: float, results: float = 100, target: float | None = 0.8) -> SinkSeen:
    return SinkSeen("heat.alarms", target, results, in_time, p99_seconds=1.234567)


def stage(**changed: object) -> StageSeen:
    seen = {
        "name": "heat.warm",
        "rows_waiting": 500,
        "still_seconds": 8.0,
        "turn_seconds": None,
        "usual_seconds": 0.1,
        "may_run": True,
    }
    return StageSeen(**{**seen, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "severity"), [(sink(0.94), "warning"), (sink(0.49), "critical"), (sink(0.95), None)]
)
def test_a_target_is_missed_under_95_percent_and_badly_under_half(
    seen: SinkSeen, severity: str | None
) -> None:
    assert [alert.severity for alert in missed_targets([seen], NOW)] == ([severity] if severity else [])


def test_a_missed_target_is_told_with_its_numbers() -> None:
    [alert] = missed_targets([sink(0.5)], NOW)
    assert (alert.kind, alert.subject, alert.since) == ("target", "heat.alarms", NOW)
    assert alert.reason == "50% of the last minute's results came within 800 ms; p99 is 1.23 s"


def test_a_sink_without_results_or_target_misses_nothing() -> None:
    assert missed_targets([sink(0.0, results=0), sink(0.0, target=None)], NOW) == []


def test_a_stage_with_rows_and_free_slots_that_gets_no_turn_is_stuck() -> None:
    [alert] = stuck_stages([stage()], free_slots=1, now=NOW)
    assert alert.reason == "500 rows wait and it got no turn for 8 s, with slots free"
    assert alert.severity == "critical"


@pytest.mark.parametrize(
    "changed",
    [
        {"still_seconds": 4.0},
        {"rows_waiting": 0},
        {"may_run": False},
        {"waits_on_purpose": True},
        {"turn_seconds": 3.9},
    ],
)
def test_a_stage_that_waits_for_a_reason_or_moves_is_not_stuck(changed: dict[str, object]) -> None:
    assert stuck_stages([stage(**changed)], free_slots=1, now=NOW) == []


def test_a_stage_that_waits_while_all_slots_are_busy_is_not_stuck() -> None:
    assert stuck_stages([stage()], free_slots=0, now=NOW) == []


@pytest.mark.parametrize(
    ("turn", "usual", "stuck"),
    [(4.1, 0.1, True), (9.0, 2.0, False), (10.1, 2.0, True), (29.0, None, False), (31.0, None, True)],
)
def test_a_turn_is_stuck_that_takes_far_longer_than_its_stage_does(
    turn: float, usual: float | None, stuck: bool
) -> None:
    seen = stage(turn_seconds=turn, usual_seconds=usual)
    assert bool(stuck_stages([seen], free_slots=0, now=NOW)) is stuck


@pytest.mark.parametrize(
    ("turn", "usual", "slow"),
    [
        (3.9, 1.0, False),
        (4.1, 1.0, True),
        (5.1, 1.0, False),
        (6.9, 3.5, False),
        (7.1, 3.5, True),
        (35.0, 30.0, False),
        (36.1, 30.0, True),
        (20.0, None, False),
    ],
)
def test_a_turn_is_slow_that_takes_twice_as_long_or_is_overdue_and_not_yet_stuck(
    turn: float, usual: float | None, slow: bool
) -> None:
    seen = stage(turn_seconds=turn, usual_seconds=usual)
    assert bool(slow_stages([seen], free_slots=0, now=NOW)) is slow


def test_a_slow_turn_is_a_warning_with_its_numbers() -> None:
    [alert] = slow_stages([stage(turn_seconds=8.0, usual_seconds=2.0)], free_slots=0, now=NOW)
    assert (alert.kind, alert.severity) == ("slow", "warning")
    assert alert.reason == "slow turn: it runs for 8 s; its turns take 2 s"


def test_a_stage_that_stands_in_line_for_twice_its_target_with_slots_free_is_slow() -> None:
    waits = {"waits_on_purpose": True, "target_seconds": 0.8}
    [alert] = slow_stages([stage(**waits)], free_slots=1, now=NOW)
    assert alert.reason == "500 rows wait in line for 8 s, with slots free; the target is 800 ms"
    patient = [stage(**waits | {"target_seconds": each}) for each in (4.1, None)]
    assert slow_stages(patient, free_slots=1, now=NOW) == []
    assert slow_stages([stage(**waits)], free_slots=0, now=NOW) == []
    assert slow_stages([stage(**waits | {"may_run": False})], free_slots=1, now=NOW) == []
    assert slow_stages([stage(**waits | {"usual_seconds": None})], free_slots=1, now=NOW) == []


def test_a_broker_is_told_of_that_is_away_for_longer_than_a_restart_takes() -> None:
    [alert] = away_brokers([AwaySeen("heat.readings", 6.5), AwaySeen("heat.alarms", 6.0)], NOW)
    assert (alert.kind, alert.severity, alert.subject) == ("away", "warning", "heat.readings")
    assert alert.reason == "its broker has been away for 6 s: no rows go through it, and it is looked for"


def test_a_failed_pipeline_is_told_with_its_reason() -> None:
    [alert] = failed_pipelines([("heat", "operator 'warm' raised")], NOW)
    assert (alert.severity, alert.reason) == ("critical", "it has stopped: operator 'warm' raised")


def test_budgets_are_told_of_from_90_percent_on() -> None:
    alerts = spent_budgets([BudgetSeen("a", 0.89), BudgetSeen("b", 0.9), BudgetSeen("c", 1.0)], NOW)
    assert [(alert.subject, alert.severity) for alert in alerts] == [("b", "warning"), ("c", "critical")]


def test_disks_are_told_of_below_10_percent_free() -> None:
    disks = [DiskSeen("/a", 10, 100), DiskSeen("/b", 9, 100), DiskSeen("/c", 2, 100), DiskSeen("/d", 0, 0)]
    alerts = full_disks(disks, NOW)
    assert [(alert.subject, alert.severity) for alert in alerts] == [("/b", "warning"), ("/c", "critical")]


def test_an_alert_that_goes_on_keeps_its_beginning_and_one_that_ends_is_told() -> None:
    old = Alert("stuck", "critical", "a", "5 s", 1.0)
    gone = Alert("stuck", "critical", "b", "5 s", 2.0)
    new = Alert("disk", "warning", "a", "9%", 3.0)
    turnover = follow([old, gone], [Alert("stuck", "critical", "a", "8 s", 3.0), new])
    assert turnover.alerts == (Alert("stuck", "critical", "a", "8 s", 1.0), new)
    assert (turnover.began, turnover.ended) == ((new,), (gone,))
