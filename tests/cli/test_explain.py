"""`penstock explain` reads the decisions of a state directory."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.measure.minutes import StageMinute
from penstock.measure.stage_meter import StageMeter
from penstock.plan.changes import PlanChange
from penstock.plan.elastic import AddNode, AddReplica, Observation, Record
from penstock.plan.elastic import Decision as Change
from penstock.scheduling.decisions import Decision, Grant, Hold

NOON = 1_700_000_000.0


def grant(stage: str, seconds: float, waited: float, rows: int = 10) -> Grant:
    return Grant(stage, rows, 1, NOON + seconds, waited, "came first")


def hold(stage: str, seconds: float, reason: str = "needs 1 slot, 0 of 2 are free") -> Hold:
    return Hold(reason, NOON + seconds, stage)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state of an engine that has decided a little: the older decisions lie in a file of their own."""
    keep(tmp_path / "decisions.1.jsonl", [grant("p.parse", 0, 0.1), hold("p.count", 1)])
    keep(
        tmp_path / "decisions.jsonl",
        [
            grant("p.parse", 2, 0.3),
            hold("p.count", 3),
            hold("p.count", 4, "needs 2 slots, 1 of 2 is free"),
            grant("p.count", 5, 1.5, rows=1200),
            hold("", 6, "no stage waits"),
        ],
    )
    return tmp_path


def keep(path: Path, decisions: list[Decision]) -> None:
    path.write_text("".join(json.dumps(each.to_json()) + "\n" for each in decisions))


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["explain", *(str(argument) for argument in arguments)]) == 0
    return capsys.readouterr().out


def test_the_last_decisions_are_shown_and_all_are_counted(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = explained(capsys, "--state", state, "-n", 2)
    assert [line.split()[1:3] for line in shown.splitlines()[:2]] == [["grant", "p.count"], ["hold", "no"]]
    assert shown.splitlines()[2] == ""
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines() if "│" in line]
    assert cells == [
        ["p.count", "1", "1,200", "1.500", "1.500", "needs 1 slot, 0 of 2 are free (2)"],
        ["", "", "", "", "", "needs 2 slots, 1 of 2 is free (1)"],
        ["p.parse", "2", "20", "0.200", "0.300", ""],
    ]
    assert shown.endswith("1 time no stage waited\n")


@pytest.mark.parametrize("wanted", ["p.parse", "parse"])
def test_one_stage_alone_by_its_full_or_its_short_name(
    state: Path, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = explained(capsys, wanted, "--state", state)
    assert "p.count" not in shown
    assert shown.count("grant  p.parse") == 2


def test_the_name_of_a_pipeline_means_all_its_stages(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = explained(capsys, "p", "--state", state)
    assert "grant  p.parse" in shown
    assert "hold   p.count" in shown


MINUTE = 1_699_999_980.0  # 22:13 UTC, the minute of NOON


def stage_minute(stage: str, begin: float = MINUTE, **figures: Any) -> StageMinute:
    return StageMinute(begin, stage, 2, replace(StageMeter(0.0).figures(60.0), **figures))


@pytest.fixture
def minutes(state: Path) -> Path:
    """The same with the figures of two minutes."""
    rows = {"turns": 10, "rows_in": 1000, "utilisation": 0.9}
    kept = [
        stage_minute("p.parse", **rows, schedule_seconds=2.0, compute_seconds=1.0, slot_seconds=10.0),
        stage_minute("p.count", **rows, schedule_seconds=1.0, compute_seconds=8.0, slot_seconds=96.0),
        stage_minute("p.parse", MINUTE + 60.0),
        stage_minute("p.count", MINUTE + 60.0, rows_waiting=7),
    ]
    (state / "minutes.jsonl").write_text("".join(json.dumps(each.to_json()) + "\n" for each in kept))
    return state


def test_a_stage_is_told_what_held_it_back_in_the_last_minute_kept(
    minutes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = explained(capsys, "parse", "--state", minutes)
    assert shown.count("grant  p.parse") == 2
    assert shown.endswith("\n\n22:14 UTC: nothing held p.parse back: no row came.\n")
    assert "UTC" not in explained(capsys, "--state", minutes)


def test_a_given_minute_tells_its_own_cause_and_decisions(
    minutes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(minutes / "decisions.jsonl", [grant("p.parse", 2, 0.3), grant("p.parse", 62, 0.3)])
    shown = explained(capsys, "parse", "--minute", "22:13", "--state", minutes)
    assert shown.count("grant  p.parse") == 2  # one of them from the older file
    assert shown.splitlines()[-1] == (
        "22:13 UTC: p.parse was held back by the schedule: of the 3.0 s a row stayed, 2.0 s (67%) it was "
        "next and waited for a slot while others had the 2 slots: p.count 80% of the time "
        "(T_Q 0 ms, T_S 2.0 s, T_C 1.0 s)."
    )
    shown = explained(capsys, "--minute", "22:13", "--state", minutes)
    assert "p.count was held back by its computation" in shown
    assert "p.parse was held back by the schedule" in shown


def test_a_minute_without_decisions_is_told_by_its_figures(
    minutes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = explained(capsys, "p.count", "--minute", "22:14", "--state", minutes)
    assert shown.startswith(
        "\n22:14 UTC: p.count was held back by the schedule: 7 rows wait and it got no turn"
    )


def test_a_minute_that_is_not_kept_is_refused_and_those_that_are_named(
    minutes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "parse", "--minute", "09:00", "--state", minutes)
    assert said == f"penstock: no figures of 09:00 UTC are kept in {minutes}, of: from 22:13 to 22:14\n"
    (minutes / "minutes.jsonl").unlink()
    said = refused(capsys, "parse", "--minute", "09:00", "--state", minutes)
    assert said == f"penstock: no figures of 09:00 UTC are kept in {minutes}, of: none\n"


@pytest.mark.parametrize("text", ["24:00", "9:00", "noon", "12:60"])
def test_a_minute_must_be_a_time_of_day(state: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "parse", "--minute", text, "--state", str(state)])
    assert f"must be a time of day from 00:00 to 23:59, got {text}" in capsys.readouterr().err


def test_a_line_that_a_crash_cut_short_is_passed_over(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (state / "decisions.jsonl").open("a") as file:
        file.write('{"decision": "grant", "at": 17000{"decision": "hold"}\n{"decision": "gr')
    assert explained(capsys, "--state", state).count("grant  ") == 3


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["explain", *(str(argument) for argument in arguments)]) == 2
    return capsys.readouterr().err


def test_an_unknown_stage_is_refused_and_the_known_ones_are_named(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "join", "--state", state)
    assert said == f"penstock: no stage 'join' was decided on in {state}, of: p.count, p.parse\n"


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "--state", tmp_path / "none")
    assert said == (
        f"penstock: the state directory must exist, got {tmp_path / 'none'}: "
        "name the one your engine was given, with --state\n"
    )


def test_a_directory_without_decisions_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "--state", tmp_path)
    assert said == (
        f"penstock: no decision is kept in {tmp_path}: an engine writes them there as it runs, every second\n"
    )


def test_none_at_all_cannot_be_asked_for(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "--state", str(state), "-n", "0"])
    assert "must be 1 or more, got 0" in capsys.readouterr().err


def test_the_last_plans_are_shown_with_their_reasons(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plans = [
        PlanChange(NOON, "the first plan", {"p.parse": 1200, "p.count": 7}, {"p.out": 0.416}, 1.5, True),
        PlanChange(NOON + 9, "more came", {"p.parse": 1500}, {}, 2.5, False, "9 rows/s can be held"),
    ]
    (state / "plans.jsonl").write_text("".join(json.dumps(each.to_json()) + "\n" for each in plans))
    shown = explained(capsys, "p.parse", "--state", state)
    assert (
        "22:13:20.000  plan   the first plan; rows a turn: p.parse 1,200; predicted: p.out 0.42 s; "
        "1.50 slots busy\n"
        "22:13:29.000  plan   more came; rows a turn: p.parse 1,500; predicted: no targets; "
        "2.50 slots busy; 9 rows/s can be held\n"
    ) in shown


@pytest.fixture
def elastic(state: Path) -> Path:
    """The same with what managers of replicas and nodes decided."""
    more, node = AddReplica("p.count", "edge-2"), AddNode("edge-3", "edge", 1)
    looks = [
        (
            0.0,
            [Change(NOON, 1, "operator", "p.count", "proposed", more, "replica 0 is busy 83% of the time")],
        ),
        (0.0, [Change(NOON, 1, "application", "p", "granted", more, "1 of 1 slot free there")]),
        (30.0, [Change(NOON + 30, 1, "region", "edge", "proposed", node, "4 slots free in edge, 5 wanted")]),
        (30.0, [Change(NOON + 30, 1, "infrastructure", "all", "granted", node, "edge has 2 nodes")]),
        (60.0, [Change(NOON + 60, 2, "operator", "p.parse", "proposed", more, "it is busy")]),
        (60.0, [Change(NOON + 60, 2, "application", "p", "refused", more, "edge-2 has no free slot")]),
    ]
    records = [Record(Observation(NOON + after, ()), tuple(decided)) for after, decided in looks]
    (state / "elastic.jsonl").write_text("".join(json.dumps(each.to_json()) + "\n" for each in records))
    return state


def test_a_reconfiguration_is_told_across_the_four_managers(
    elastic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = explained(capsys, "--reconfiguration", 1, "--state", elastic)
    assert shown.splitlines() == [
        "reconfiguration 1: +1 replica, +1 node",
        "22:13:20.000  operator manager of p.count proposes a replica of p.count on edge-2: "
        "replica 0 is busy 83% of the time",
        "22:13:20.000  application manager of p grants a replica of p.count on edge-2: "
        "1 of 1 slot free there",
        "22:13:50.000  region manager of edge proposes node edge-3 of 1 slot in edge: "
        "4 slots free in edge, 5 wanted",
        "22:13:50.000  infrastructure manager grants node edge-3 of 1 slot in edge: edge has 2 nodes",
    ]


def test_the_last_reconfigurations_are_shown_with_their_outcome(
    elastic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (elastic / "elastic.jsonl").open("a") as file:
        file.write('{"seen": {"now": 1.0, "nod')
    assert explained(capsys, "--state", elastic).endswith(
        "\n\n22:13:20.000  reconfiguration 1: +1 replica, +1 node\n"
        "22:14:20.000  reconfiguration 2: refused: edge-2 has no free slot\n"
    )


def test_a_reconfiguration_that_is_not_kept_is_refused(
    elastic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "--reconfiguration", 7, "--state", elastic)
    assert said == "penstock: no reconfiguration 7 is kept, of: from 1 to 2\n"
