"""`penstock test`: style, types and every test, as CI runs them; with arguments, pytest alone with those."""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import PenstockError

CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("style: ruff check", ("ruff", "check", ".")),
    ("style: ruff format", ("ruff", "format", "--check", ".")),
    ("types: mypy", ("mypy",)),
)

KAFKA = "--kafka"
SLOWEST = "--durations=12"
# Most tests wait more than they compute: three processes, each with a Spark session of its own.
TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("tests: pytest", ("pytest", "-rs", SLOWEST, "-n", "3", "--dist", "loadfile", "-m", "not alone")),
    ("tests that run alone: pytest", ("pytest", "-rs", SLOWEST, "-m", "alone")),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pytest_arguments",
        nargs="*",
        metavar="PYTEST_ARGUMENT",
        help="given to pytest, which then runs alone: `penstock test tests/cli -x`; with --kafka the tests "
        "that need Kafka, whose jars are installed first",
    )


def run(args: argparse.Namespace) -> int:
    root = _clone()
    if KAFKA in args.pytest_arguments:
        _install_kafka()
    asked = ("tests: pytest", ("pytest", *args.pytest_arguments))
    steps = [asked] if args.pytest_arguments else [*CHECKS, *TESTS]
    _require(arguments[0] for _, arguments in steps)
    if not args.pytest_arguments or KAFKA in args.pytest_arguments:
        _install_classes()
    failed = [heading for heading, arguments in steps if not _passes(heading, arguments, root)]
    if failed:
        print(f"\nfailed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


def _install_kafka() -> None:
    from penstock.spark.kafka.jars import BROKER, CONNECTOR

    for jars in (CONNECTOR, BROKER):
        if not jars.is_installed:
            print(f"installing the jars of {jars.name} (about a minute)", flush=True)
            jars.install()


def _install_classes() -> None:
    """Tests start Spark some dozens of times."""
    from penstock.spark.class_archive import make_archive

    try:
        make_archive()
    except PenstockError as error:
        print(error, flush=True)


def _passes(heading: str, arguments: Sequence[str], root: Path) -> bool:
    print(f"\n== {heading}", flush=True)
    begun = time.monotonic()
    code = subprocess.run([sys.executable, "-m", *arguments], cwd=root, check=False).returncode
    print(
        f"-- {'passed' if code == 0 else f'exit code {code}'}, {time.monotonic() - begun:.1f} s", flush=True
    )
    return code == 0


def _clone() -> Path:
    """The root of the repository this package is run from; an installed package has no tests with it."""
    package = Path(__file__).resolve().parents[1]
    for folder in package.parents:
        if (folder / "pyproject.toml").is_file() and (folder / "tests").is_dir():
            return folder
    raise PenstockError(
        f"the tests come with a clone of the repository, and this package is installed in {package}: "
        "run ./penstock test in a clone"
    )


def _require(tools: Iterable[str]) -> None:
    missing = sorted({tool for tool in tools if find_spec(tool) is None})
    if missing:
        raise PenstockError(
            f"the tests need {', '.join(missing)}, not found by {sys.executable}: "
            "start them with ./penstock test, which installs requirements-dev.txt"
        )
