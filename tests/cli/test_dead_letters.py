"""`penstock dead-letters` on a state directory, with its queues open and without."""

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.cli.main import main
from penstock.queues.owner import OwnerLock
from penstock.queues.spool import Spool


def letters(*rows: tuple[str, str]) -> pa.Table:
    return pa.table({"dead_letter": [reason for reason, _ in rows], "raw": [raw for _, raw in rows]})


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with a pipeline that has put nothing aside yet."""
    (tmp_path / "alerts").mkdir()
    (tmp_path / "alerts/pipeline.json").write_text("{}")
    return tmp_path


def queue(state: Path, operator: str) -> Spool:
    return Spool(state / "alerts/queues" / f"{operator}.dead", clock=lambda: 1_700_000_000.0)


def test_rows_are_shown_with_reasons_while_an_engine_has_the_queue_open(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with queue(state, "parse") as spool, queue(state, "per second") as late:
        spool.append(letters(("malformed JSON", "{[bold]"), ("malformed JSON", "{2")))
        spool.append(letters(("no field 'v'", "{}")))
        late.append(letters(("late", '{"v": 1}')))
        assert main(["dead-letters", "alerts", "--state", str(state), "-n", "3"]) == 0
    shown = capsys.readouterr().out
    assert "the last 3 of 4 rows put aside" in shown
    assert "11-14 22:13:20" in shown
    assert "per second" in shown
    assert '{"v": 1}' in shown
    assert "{[bold]" not in shown, "only the last three"
    assert shown.splitlines()[-3:] == [
        "         2  malformed JSON",
        "         1  no field 'v'",
        "         1  late",
    ]


def test_as_json_all_of_them_come_as_they_were(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with queue(state, "parse") as spool:
        spool.append(letters(("malformed JSON", "{[bold] ü")))
    with Spool(state / "alerts/queues/parse") as rows:
        rows.append(pa.table({"v": [1]}))
    assert main(["dead-letters", "alerts", "--state", str(state), "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {
            "at": "2023-11-14T22:13:20+00:00",
            "queue": "parse",
            "dead_letter": "malformed JSON",
            "raw": "{[bold] ü",
        }
    ]


def test_what_is_in_a_row_is_not_taken_for_markup(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with queue(state, "parse") as spool:
        spool.append(letters(("[red]odd[/red]", "[bold]x :ab:")))
    main(["dead-letters", "alerts", "--state", str(state)])
    shown = capsys.readouterr().out
    assert "[bold]x :ab:" in shown
    assert shown.count("[red]odd[/red]") == 2


def test_a_pipeline_that_has_put_nothing_aside_and_one_that_is_not_there(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dead-letters", "alerts", "--state", str(state)]) == 0
    assert capsys.readouterr().out == "pipeline 'alerts' has put no row aside\n"
    assert main(["dead-letters", "bills", "--state", str(state)]) == 2
    assert "no pipeline 'bills' has state in" in capsys.readouterr().err


def test_rows_that_were_shown_are_cleared_and_later_ones_stay(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with queue(state, "parse") as spool:
        spool.append(letters(("malformed JSON", "{1")))
    with Spool(state / "alerts/queues/parse.dead", clock=lambda: 5e9) as spool:
        spool.append(letters(("malformed JSON", "{2")), producer="later")
    assert main(["dead-letters", "alerts", "--state", str(state), "--json", "--clear"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["raw"] for line in shown.out.splitlines()] == ["{1"]
    assert shown.err == "removed 1\n"
    with queue(state, "parse") as spool:
        assert [segment.producer for segment in spool.segments] == ["later"]


def test_an_engine_that_runs_is_asked_to_clear_them(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = OwnerLock(state)
    with queue(state, "parse") as spool:
        spool.append(letters(("malformed JSON", "{1")))
        begun = time.time()
        assert main(["dead-letters", "alerts", "--state", str(state), "--clear"]) == 0
        assert spool.rows == 1, "the queue is the engine's"
    running.release()
    assert begun <= float((state / "alerts/clear-dead-letters").read_text()) <= time.time()
    assert f"the engine that runs (process {os.getpid()}) removes them as soon as" in capsys.readouterr().err
