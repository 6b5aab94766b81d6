"""`penstock report`: one HTML file about a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.dashboard.records import write_record

from penstock.cli.main import main
from penstock.cli.report import record_of
from penstock.cli.state_directory import StateDirectory


def test_it_writes_one_file_that_needs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_record(tmp_path)
    out = tmp_path / "run.html"
    assert main(["report", str(tmp_path), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"report   {out}\n"
    text = out.read_text()
    assert "1 of 2 targets were kept. Worst was heat.alarms: 73% of its results came in time." in text
    assert text.count('src="data:image/png;base64,') == 3
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert "heat.warm was held back by the schedule" in text
    assert "utilisation 0.91 over 0.70 &lt;b&gt;" in text
    assert "has stopped" not in text


def test_it_tells_rates_and_how_evenly_the_stages_were_served(tmp_path: Path) -> None:
    write_record(tmp_path)
    assert main(["report", "--state", str(tmp_path), "--out", str(tmp_path / "run.html")]) == 0
    text = (tmp_path / "run.html").read_text()
    cells = [re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", line) for line in text.split("<tr>")]
    assert ["stage", "w", "q", "r", "w*r/q"] in cells
    assert ["pipeline", "come/s", "highest predicted/s", "CV of busy", "CV of w*r/q"] in cells
    # A thousand rows a second, half of them out again, in turns of 0.4 s on one of two slots.
    assert ["heat.warm", "0.25", "1.00", "1.00", "0.25"] in cells
    assert ["heat", "997", "5.0k", "0.00", "0.00"] in cells
    [stage] = [line for line in cells if line[:1] == ["heat.warm"] and len(line) > 10]
    assert stage[4:7] == ["0.50", "997", "2.5k"]


def test_a_failure_is_told_first(tmp_path: Path) -> None:
    write_record(tmp_path)
    folder = tmp_path / "heat"
    folder.mkdir()
    (folder / "pipeline.json").write_text("{}")
    (folder / "failed.json").write_text('{"stage": "heat.warm", "reason": "operator <warm> raised"}')
    record = record_of(StateDirectory(tmp_path))
    assert record.verdict() == "A pipeline has stopped by an error: heat."
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "run.html")]) == 0
    assert "operator &lt;warm&gt; raised" in (tmp_path / "run.html").read_text()


def test_only_the_last_run_is_told_of(tmp_path: Path) -> None:
    write_record(tmp_path)
    record = record_of(StateDirectory(tmp_path))
    whole = len(record.minutes)
    old = [each.from_json({**each.to_json(), "begin": each.begin - 7200}) for each in record.minutes]
    two = type(record)(record.name, [*old, *record.minutes], record.spans, record.turns, record.changes)
    assert len(two.last_run().minutes) == whole
    assert two.last_run().begin == record.begin


def test_a_directory_without_figures_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"penstock: no figures are kept in {tmp_path}: an engine writes them there as it runs, "
        "and when it ends\n"
    )
