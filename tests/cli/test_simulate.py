"""`penstock simulate`: a table and a picture from profiles alone, without Spark."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.cli.main import main
from penstock.cli.simulate import _numbers, _seeds, parse_rate
from penstock.errors import PenstockError
from penstock.measure.profiles import Profiler
from penstock.measure.turns import TurnRecord

FILE = """
import pyarrow as pa
from penstock import Pipeline, sinks, sources

pipeline = Pipeline("heat")
rows = pipeline.source("in", sources.Replay(pa.table({"id": [1]}), rows_per_second=1000, stamp="seen"))
warm = rows.operator("warm", lambda frame: 1 / 0)
warm.operator("keep", lambda frame: frame).sink("archive", sinks.Parquet("archive"), latency="10s")
peaks = warm.window("by second", on="seen", size="1s", aggregate="count(*) as n")
peaks.sink("alarms", sinks.Parquet("alarms"), latency="800ms")
"""


def learned(fixed: float, per_row: float, selectivity: float) -> dict[str, float]:
    profiler = Profiler()
    for batch, rows in enumerate((10, 100, 1000) * 10):
        end = fixed + per_row * rows
        out = int(rows * selectivity)
        profiler.learn(TurnRecord("s", "p", batch, "direct", 1, 0.0, end, rows, out, 0.0, 0.0, end))
    return profiler.to_json()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(penstock.__file__).absolute().parents[1]))
    (tmp_path / "heat.py").write_text(FILE)
    known = {
        "heat.warm": learned(0.02, 1e-5, 0.5),
        "heat.keep": learned(0.03, 1e-5, 1.0),
        "heat.by second": learned(0.08, 1e-5, 0.01),
    }
    (tmp_path / "penstock-state").mkdir()
    (tmp_path / "penstock-state/profiles.json").write_text(json.dumps(known))
    return Path("heat.py")


def test_policies_and_sizes_are_compared_in_a_table_and_a_picture(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--slots", "1,2", "--policy", "llf,fifo", "--minutes", "1", "--seed", "1,2", "--rate", "2x"]
    assert main(["simulate", str(file), *asked]) == 0
    shown = capsys.readouterr().out
    assert "3 stages, 2,000 rows/s, 0.0167 h simulated; median of 2 seeds, ± half their range" in shown
    lines = [line.split() for line in shown.splitlines() if "heat." in line]
    assert [line[:3] for line in lines[::2]] == [
        [policy, slots, "heat.archive"] for policy in ("llf", "fifo") for slots in ("1", "2")
    ]
    assert [line[0] for line in lines[1::2]] == ["heat.alarms"] * 4
    assert "picture in simulate.png" in shown
    assert Path("simulate.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_of_spark_is_imported(file: Path) -> None:
    program = (
        "import sys\nfrom penstock.cli.main import main\n"
        f"main(['simulate', {str(file)!r}, '--minutes', '0.2', '--picture', 'out/p.png'])\n"
        "print([name for name in ('pyspark', 'py4j') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.endswith("[]\n")
    assert Path("out/p.png").exists()


def test_rows_that_pile_up_are_told_of(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(file), "--slots", "1", "--minutes", "2", "--rate", "120x"]) == 0
    assert "llf on 1 slots does not keep up: " in capsys.readouterr().out


def test_planned_batches_can_be_simulated(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(file), "--policy", "batchit", "--minutes", "0.5"]) == 0
    assert "batchit" in capsys.readouterr().out


def test_slots_of_a_stage_are_those_declared_or_planned_for_the_pool(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def p50(slots_per_stage: str) -> list[float]:
        asked = ["--slots", "4,12", "--rate", "80x", "--minutes", "1", "--slots-per-stage", slots_per_stage]
        assert main(["simulate", str(file), *asked]) == 0
        said.append(capsys.readouterr().out)
        cells = [line.split() for line in said[-1].splitlines() if "heat.archive" in line]
        return [float(each[3]) for each in cells if each[0] == "llf"]

    said: list[str] = []
    declared, planned = p50("declared"), p50("planned")
    assert declared[1] == pytest.approx(declared[0], rel=0.05), "with one slot a stage, most of 12 are idle"
    assert planned[1] < 0.8 * declared[1]
    assert "planned: heat.warm 5, heat.keep" in said[1]


def test_a_pool_for_which_there_is_no_plan_is_simulated_as_declared(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--slots", "1", "--rate", "120x", "--minutes", "0.2", "--slots-per-stage", "planned"]
    assert main(["simulate", str(file), *asked]) == 0
    assert "as declared: the stages must have at least" in " ".join(capsys.readouterr().out.split())


def test_stages_without_costs_lead_to_the_command_that_finds_them(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(file), "--state", "elsewhere"]) == 2
    assert capsys.readouterr().err == (
        "penstock: stages must have known costs to be simulated, got none for heat.warm, heat.keep, "
        "heat.by second in elsewhere: run `penstock profile heat.py --state elsewhere` first\n"
    )


@pytest.mark.parametrize("text", ["x", "0x", "-5", "inf", "fast"])
def test_a_rate_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PenstockError) as error:
        parse_rate(text)
    assert str(error.value) == (
        f"a rate must be a factor such as '10x' or rows/s such as '5000', got {text!r}: no row would come"
    )


def test_lists_of_numbers_are_read_and_others_refused() -> None:
    assert _numbers("64,2,64") == (64, 2)
    assert _seeds("0,7") == (0, 7)
    for text in ("", "a", "1,,2", "0"):
        with pytest.raises(argparse.ArgumentTypeError):
            _numbers(text)


def test_no_time_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(file), "--minutes", "0"]) == 2
    assert capsys.readouterr().err == (
        "penstock: simulated time must be positive, got 0 s: nothing would happen\n"
    )
