"""What a bench's result becomes: a JSON file, plots beside it, and a table that shows what was missed."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from penstock.bench.report import report, write_json
from penstock.bench.result import BenchResult, Plot, Table, at_least, at_most
from penstock.bench.stats import Summary, single


def _result() -> BenchResult:
    result = BenchResult("turns", setup={"rounds": 3})
    result.put("stateless_ratio", Summary(3.5, 3.1, 3.9, 10), at_least(3))
    result.put("hop_ms", Summary(61.0, 55.0, 70.0, 300), at_most(50))
    result.put("turn_ms", single(22.0))
    return result


def _reported(result: BenchResult, path: Path) -> str:
    shown = io.StringIO()
    console = Console(file=shown, width=110)
    report(result, path, machine={"cores": 2}, command="penstock bench turns --quick", console=console)
    return shown.getvalue()


def test_the_file_holds_bench_figures_and_setup_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "turns.json"
    _reported(_result(), path)
    assert json.loads(path.read_text()) == {
        "bench": "turns",
        "figures": {"stateless_ratio": 3.5, "hop_ms": 61.0, "turn_ms": 22.0},
        "setup": {
            "command": "penstock bench turns --quick",
            "machine": {"cores": 2},
            "rounds": 3,
            "spread": {"stateless_ratio": [3.1, 3.9], "hop_ms": [55.0, 70.0], "turn_ms": [22.0, 22.0]},
            "runs": {"stateless_ratio": 10, "hop_ms": 300, "turn_ms": 1},
        },
    }


def test_a_figure_that_is_not_a_number_is_null_and_missed(tmp_path: Path) -> None:
    result = BenchResult("turns")
    result.put("hop_ms", single(float("nan")), at_most(50))
    shown = _reported(result, tmp_path / "turns.json")
    assert json.loads((tmp_path / "turns.json").read_text())["figures"] == {"hop_ms": None}
    assert "missed: hop_ms" in shown


def test_what_is_known_so_far_can_be_written_where_no_folder_is_yet(tmp_path: Path) -> None:
    path = tmp_path / "new" / "riot.json"
    write_json(BenchResult("riot"), path)
    assert json.loads(path.read_text()) == {"bench": "riot", "figures": {}, "setup": {}}


def _line(shown: str, figure: str) -> list[str]:
    line = next(line for line in shown.splitlines() if figure in line)
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_the_table_shows_each_figure_with_its_mark_and_whether_it_was_met(tmp_path: Path) -> None:
    shown = _reported(_result(), tmp_path / "turns.json")
    assert _line(shown, "stateless_ratio") == [
        "stateless_ratio",
        "3.5",
        "3.1 to 3.9",
        "10",
        "at least 3",
        "ok",
    ]
    assert _line(shown, "hop_ms") == ["hop_ms", "61", "55 to 70", "300", "at most 50", "missed"]
    assert _line(shown, "turn_ms") == ["turn_ms", "22", "22 to 22", "1", "", ""]
    assert "missed: hop_ms\n" in shown


def test_a_mark_without_a_figure_is_missed(tmp_path: Path) -> None:
    result = BenchResult("crash", marks={"lost": at_most(0)})
    shown = _reported(result, tmp_path / "crash.json")
    assert _line(shown, "lost") == ["lost", "-", "", "", "at most 0", "missing"]
    assert result.missed == ["lost"]


def test_the_command_that_repeats_it_and_the_files_are_told(tmp_path: Path) -> None:
    shown = _reported(_result(), tmp_path / "turns.json")
    assert "repeat with penstock bench turns --quick\n" in shown
    assert f"written to {tmp_path / 'turns.json'}\n" in shown


def test_a_plot_lies_beside_the_file(tmp_path: Path) -> None:
    result = _result()
    result.plots.append(Plot("hops", lambda figure: figure.subplots().set_title("hops")))
    shown = _reported(result, tmp_path / "turns.json")
    assert (tmp_path / "turns-hops.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path / "turns-hops.png") in shown


def test_tables_of_the_bench_s_own_are_printed_too(tmp_path: Path) -> None:
    result = _result()
    result.tables.append(Table("one turn", ["query", "ms"], [["stateless", "22.0"]]))
    assert _line(_reported(result, tmp_path / "turns.json"), "stateless ") == ["stateless", "22.0"]


@pytest.mark.parametrize(("figure", "met"), [(2.99, False), (3.0, True), (float("nan"), False)])
def test_a_mark_is_met_from_its_value_on(figure: float, met: bool) -> None:
    assert at_least(3).met_by(figure) is met
