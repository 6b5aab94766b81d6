"""What the demo shows of two runs."""

import base64
import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from tests.workloads.recorded import STARTED_AT, recorded_run

from penstock.cli.main import main
from penstock.demo.live import Lines, LiveTable, phase, view_for
from penstock.demo.page import Report
from penstock.demo.plots import save_picture
from penstock.demo.summary import lines, summary_table, verdict
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import LOADS, SIDES


@pytest.fixture(scope="module")
def runs() -> list[ShareRun]:
    return [recorded_run("spark", 6.25), recorded_run("penstock", 0.25)]


def test_the_summary_has_each_group_on_each_side(runs: list[ShareRun]) -> None:
    told = {(line.group, line.side): line.cells[2:8] for line in lines(runs)}
    assert told["4 urgent", "Penstock"] == ("800 ms", "80", "0", "250 ms", "250 ms", "100 %")
    assert told["4 urgent", "plain Spark"][-1] == "0 %"
    assert len(told) == 4


def test_the_verdict_names_both_sides_and_the_ratio(runs: list[ShareRun]) -> None:
    text = verdict(*runs)
    assert text.startswith(
        "Urgent results came after 250 ms (p50) and 250 ms (p99) under Penstock, after 6.25 s"
    )
    assert "25 times and 25 times as long" in text


def test_the_page_holds_the_figures_and_needs_no_other_file(runs: list[ShareRun]) -> None:
    report = Report(runs, 20.0, b"a picture", {"cores": 2}, "penstock demo --seconds 30", "today")
    page = report.html()
    for line in lines(runs):
        for cell in line.cells:
            assert f"<td>{cell}</td>" in page
    for load in LOADS:
        assert f"<td>{load.name}</td>" in page
    assert base64.b64encode(b"a picture").decode() in page
    assert "<code>penstock demo --seconds 30</code>" in page
    assert "<th>cores</th><td>2</td>" in page
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []


def test_the_picture_is_a_png(runs: list[ShareRun], tmp_path: Path) -> None:
    assert save_picture(runs, tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_side_without_results_still_gives_a_table_a_picture_and_a_page(tmp_path: Path) -> None:
    silent = ShareRun(SIDES["spark"], 1.0)
    silent.take({"event": "started", "at": STARTED_AT})
    silent.take({"event": "ended", "at": STARTED_AT + 10})
    both = [silent, recorded_run("penstock", 0.25)]
    picture = save_picture(both, tmp_path / "demo.png")
    assert "not once in the time measured on plain Spark; " in verdict(*both)
    assert "–" in Report(both, 9.0, picture.read_bytes(), {}, "penstock demo", "today").html()
    assert summary_table(both).row_count == 5


@pytest.mark.parametrize(
    ("after_seconds", "text", "share"),
    [
        (4.0, "warming up, 4 of 10 s (not counted)", 4 / 30),
        (15.0, "measuring, 5 of 20 s", 0.5),
        (99.0, "measuring, 20 of 20 s", 1.0),
    ],
)
def test_the_phase_says_what_counts(
    runs: list[ShareRun], after_seconds: float, text: str, share: float
) -> None:
    assert phase(runs[0], 20.0, STARTED_AT + after_seconds) == (text, share)


def test_before_the_start_the_phase_says_so() -> None:
    assert phase(ShareRun(SIDES["spark"], 10.0), 20.0, 0.0) == ("starting Spark and eight queries", 0.0)


def test_a_terminal_gets_the_table_with_the_run_before_beside_it(runs: list[ShareRun]) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    view = view_for(console, 20.0, runs[0], lambda: STARTED_AT + 30.0)
    assert isinstance(view, LiveTable)
    with view:
        view.show(runs[1])
    for text in ("Penstock", "urgent-4", "250 ms", "p50, plain Spark", "6.25 s"):
        assert text in screen.getvalue()


def test_elsewhere_a_line_comes_every_five_seconds(runs: list[ShareRun]) -> None:
    told: list[str] = []
    times = iter((STARTED_AT + 20.0, STARTED_AT + 22.0, STARTED_AT + 26.0))
    view = Lines(told.append, 20.0, lambda: next(times))
    for _ in range(3):
        view.show(runs[1])
    assert [text.split(";")[0] for text in told] == [
        "Penstock: measuring, 10 of 20 s",
        "Penstock: measuring, 16 of 20 s",
    ]
    assert "urgent p50 250 ms, p99 250 ms; bulky rows" in told[0]


def test_too_short_a_demo_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seconds", "3"]) == 2
    assert capsys.readouterr().err == (
        "penstock: a demo must run each side for at least 10 s, got 3 s: no window of 10 s would end\n"
    )
