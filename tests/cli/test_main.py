"""The table of commands, and what `main` does around the one that was chosen."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from penstock import __version__
from penstock.cli.main import COMMANDS, main
from penstock.errors import PenstockError


def test_help_lists_every_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    shown = capsys.readouterr().out
    assert stopped.value.code == 0
    width = max(len(command.name) for command in COMMANDS)
    for command in COMMANDS:
        assert f"  {command.name:<{width}}  {command.help}\n" in shown


def test_no_command_at_all_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "commands:\n" in capsys.readouterr().out


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"penstock {__version__}\n"


def test_an_unknown_command_is_refused_and_the_known_ones_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["flow"])
    shown = capsys.readouterr().err
    assert stopped.value.code == 2
    assert "invalid choice: 'flow'" in shown
    for command in COMMANDS:
        assert command.name in shown


@pytest.mark.parametrize("module", ["penstock", "penstock.cli.main"])
def test_importing_it_imports_no_spark(module: str) -> None:
    question = f"import sys, {module}; print(sorted({{'pyspark', 'pandas', 'pyarrow'}} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"


def _command_that(run: object) -> SimpleNamespace:
    return SimpleNamespace(add_arguments=lambda parser: None, run=run)


def test_a_penstock_error_becomes_one_message_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(args: object) -> int:
        raise PenstockError("latency target must be positive, got 0 ms: no turn could ever meet it")

    monkeypatch.setitem(sys.modules, "penstock.cli.graph", _command_that(refuse))
    assert main(["graph"]) == 2
    shown = capsys.readouterr()
    assert shown.err == "penstock: latency target must be positive, got 0 ms: no turn could ever meet it\n"
    assert shown.out == ""


def test_control_c_ends_quietly_with_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "penstock.cli.graph", _command_that(interrupt))
    assert main(["graph"]) == 130
    assert capsys.readouterr() == ("", "")
