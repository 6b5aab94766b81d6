"""`penstock test` hands its arguments on, and says which step failed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.cli.main import main

PACKAGE = Path(penstock.__file__).parent


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A small repository around the command: its own tests are one that passes and one that fails."""
    (tmp_path / "src/penstock").mkdir(parents=True)
    for name in ("__init__.py", "__main__.py", "errors.py", "cli"):
        copy = shutil.copytree if (PACKAGE / name).is_dir() else shutil.copy
        copy(PACKAGE / name, tmp_path / "src/penstock" / name)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['tests']\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_two.py").write_text(
        "def test_good():\n    pass\n\n\ndef test_bad():\n    assert 1 == 2\n"
    )
    return tmp_path


def _run(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", "test", *arguments]
    environment = {"PYTHONPATH": str(clone / "src"), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)


def test_arguments_go_to_pytest_options_and_all_and_nothing_else_runs(clone: Path) -> None:
    done = _run(clone, "-k", "good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 1 deselected" in done.stdout
    assert [line for line in done.stdout.splitlines() if line[:3] == "== "] == ["== tests: pytest"]


def test_a_failing_test_fails_the_command_by_name(clone: Path) -> None:
    done = _run(clone, "tests")
    assert done.returncode == 1
    assert done.stdout.endswith("\nfailed: tests: pytest\n")


def test_its_help_is_its_own_not_pytest_s(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["test", "--help"])
    assert "which then runs alone" in capsys.readouterr().out
