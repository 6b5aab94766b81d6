"""`penstock bench`: the list, and one bench from its arguments to its files."""

import argparse
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.bench.catalog import BENCHES
from penstock.bench.result import BenchResult, BenchSettings, at_most
from penstock.bench.stats import single
from penstock.cli.main import main


def _bench(monkeypatch: pytest.MonkeyPatch, seen: list[BenchSettings]) -> None:
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--kills", type=int, default=20)

    def run(settings: BenchSettings) -> BenchResult:
        seen.append(settings)
        result = BenchResult("crash")
        result.put("lost", single(0), at_most(0))
        return result

    module = SimpleNamespace(add_arguments=add_arguments, run=run)
    monkeypatch.setitem(sys.modules, "penstock.bench.crash", module)


def test_without_a_name_it_lists_the_benches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 0
    shown = capsys.readouterr().out
    for name, bench in BENCHES.items():
        assert f"  {name:8}  {bench.help}\n" in shown


def test_its_help_lists_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "--help"])
    assert stopped.value.code == 0
    assert f"  turns     {BENCHES['turns'].help}\n" in capsys.readouterr().out


def test_an_unknown_bench_is_one_message_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "speed"]) == 2
    assert capsys.readouterr().err == (
        "penstock: a bench must be one of turns, share, crash, riot, tenants, batching, connect, scaling, "
        "elastic, watch, got 'speed': nothing was measured\n"
    )


def test_a_bench_gets_its_settings_and_its_figures_are_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[BenchSettings] = []
    _bench(monkeypatch, seen)
    path = tmp_path / "crash.json"
    assert main(["bench", "crash", "--quick", "--kills", "3", "--json", str(path)]) == 0
    assert (seen[0].quick, seen[0].json, seen[0].option("kills")) == (True, path, 3)
    written = json.loads(path.read_text())
    assert (written["bench"], written["figures"]) == ("crash", {"lost": 0})
    assert (written["setup"]["quick"], written["setup"]["kills"]) == (True, 3)
    assert {"cores", "memory_mb", "java", "spark", "python"} <= set(written["setup"]["machine"])
    command = f"penstock bench crash --quick --kills 3 --json {path}"
    assert written["setup"]["command"] == command
    assert f"repeat with {command}\n" in capsys.readouterr().out


def test_without_a_file_the_figures_go_to_a_folder_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _bench(monkeypatch, [])
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "crash"]) == 0
    assert json.loads((tmp_path / "penstock-bench" / "crash.json").read_text())["bench"] == "crash"
