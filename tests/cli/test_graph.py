"""`penstock graph` shows the pipelines of a file, and never starts Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.main import main

ONE = """
from penstock import Pipeline, sinks, sources

p = Pipeline("alerts")
rows = p.source("readings", sources.Rate(10)).operator("hot", lambda d: d.filter("value > 3"))
rows.sink("out", sinks.Console(), latency="800ms")
"""
TWO = """
from penstock import Pipeline, sinks, sources


def one(name):
    p = Pipeline(name)
    p.source("readings", sources.Rate(10)).operator("hot", lambda d: d).sink("out", sinks.Console())
    return p


def pipelines():
    return [one("first"), one("second")]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "flow.py"


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


def test_a_pipeline_at_module_level_is_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(ONE)
    assert main(["graph", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "alerts.hot" in shown
    assert "target 800 ms" in shown


def test_those_that_the_function_returns_are_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(TWO)
    assert main(["graph", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "first.hot" in shown
    assert "second.hot" in shown


@pytest.mark.parametrize(("form", "mark"), [("mermaid", "flowchart"), ("graphviz", "digraph")])
def test_other_programs_can_draw_it(
    file: Path, form: str, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(ONE)
    assert main(["graph", str(file), "--format", form]) == 0
    assert mark in capsys.readouterr().out


def test_spark_is_not_even_imported(file: Path) -> None:
    file.write_text(ONE)
    question = (
        f"import sys; from penstock.cli.main import main; main(['graph', {str(file)!r}]); "
        "print('pyspark' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "False"


def test_a_module_beside_the_file_can_be_imported(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.with_name("names_beside.py").write_text("NAME = 'beside'")
    file.write_text("from names_beside import NAME\n" + ONE.replace('"alerts"', "NAME"))
    assert main(["graph", str(file)]) == 0
    assert "beside.hot" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "graph", file)
    assert said == f"penstock: {file} must be a Python file that exists: there is nothing to run\n"


def test_a_file_without_pipelines_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("x = 1")
    assert refused(capsys, "graph", file) == (
        f"penstock: {file} must have a Pipeline at module level or a function `pipelines()` "
        "that returns some, got neither\n"
    )


def test_an_error_in_the_file_is_told_with_its_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("x = 1\ny = x / 0\n")
    assert refused(capsys, "graph", file) == (
        f"penstock: {file} must run without an error, got ZeroDivisionError: division by zero (line 2)\n"
    )


def test_something_else_among_the_pipelines_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("def pipelines():\n    return ['alerts']\n")
    said = refused(capsys, "graph", file)
    assert said == f"penstock: {file} must return pipelines from `pipelines()`, got a str among them\n"


def test_one_name_for_two_pipelines_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(TWO.replace('"second"', '"first"'))
    said = refused(capsys, "graph", file)
    assert said == (
        f"penstock: {file} must give each pipeline a name of its own, got 'first' twice: rename one\n"
    )


def test_a_mistake_in_a_pipeline_is_told_as_the_pipeline_tells_it(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        "from penstock import Pipeline, sources\np = Pipeline('p')\np.source('s', sources.Rate(1))\n"
    )
    said = refused(capsys, "graph", file)
    assert said == "penstock: pipeline 'p': it has no sink: no row would ever leave it\n"
