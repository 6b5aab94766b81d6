"""Every command line of the documentation is one that the commands' own parsers take; none is run.

Lines that stand by themselves are parsed as they are. In a sentence a command may be named without what it
needs, as in `penstock run --policy llf`: there its options must exist.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.bench.catalog import BENCHES
from penstock.cli import bench
from penstock.cli.main import COMMANDS, parser_of

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINE = re.compile(r"^    (?:\$ )?(?:\./)?penstock ([^ ].*)$", re.MULTILINE)
"""A line of the layout in CONTRIBUTING.md, `penstock   the launcher`, has more room between its words."""
NAMED = re.compile(r"`(?:\./)?penstock +([^`]+)`")
NO_COMMANDS = {"pseudonyms 1": "a label of a derived key"}
PLACEHOLDERS = {"NAME", "COMMAND"}


def lines_of(pattern: re.Pattern[str]) -> Iterator[tuple[str, list[str]]]:
    """Where a command stands, and its words."""
    for page in PAGES:
        for told in pattern.findall(page.read_text()):
            if told not in NO_COMMANDS:
                yield str(page.relative_to(ROOT)), shlex.split(told, comments=True)


def parser_for(words: list[str]) -> tuple[argparse.ArgumentParser, list[str]] | None:
    """Who reads the words after a command, and which; None where another program reads them."""
    name, *arguments = words
    command = next((each for each in COMMANDS if each.name == name), None)
    assert command is not None, f"there is no command {name!r}"
    if command.passes_on or name in PLACEHOLDERS:
        return None
    if name == "bench" and arguments:
        return None if arguments[0] in PLACEHOLDERS else (bench.parser_of(arguments[0]), arguments[1:])
    return parser_of(command), arguments


def mistake(words: list[str], *, whole: bool) -> str:
    """What is wrong with a command, if anything."""
    found = parser_for(words)
    if found is None:
        return ""
    parser, arguments = found
    if not whole:
        known = {option for action in parser._actions for option in action.option_strings}
        strange = {each.split("=")[0] for each in arguments if each.startswith("-")} - known
        return f"no option {', '.join(strange)}" if strange else ""
    try:
        parser.parse_args(arguments)
    except SystemExit as refused:
        return "" if refused.code == 0 else "refused"
    return ""


@pytest.mark.parametrize(("pattern", "whole"), [(LINE, True), (NAMED, False)], ids=["lines", "named"])
def test_every_command_of_the_documentation_can_be_given(
    pattern: re.Pattern[str], whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = list(lines_of(pattern))
    assert len(commands) > 30
    wrong = [
        f"{page}: {shlex.join(words)}: {why}"
        for page, words in commands
        if (why := mistake(words, whole=whole))
    ]
    assert wrong == [], capsys.readouterr().err


def test_an_option_that_does_not_exist_is_found_in_lines_and_in_sentences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert mistake(["run", "FILE.py", "--dashbord"], whole=True) == "refused"
    assert mistake(["run", "--dashbord"], whole=False) == "no option --dashbord"
    assert mistake(["bench", "watch", "--slow"], whole=True) == "refused"
    assert "unrecognized arguments: --slow" in capsys.readouterr().err


def test_every_command_and_every_bench_is_named_somewhere() -> None:
    words = [words for pattern in (LINE, NAMED) for _, words in lines_of(pattern)]
    assert {each.name for each in COMMANDS} <= {each[0] for each in words}
    assert set(BENCHES) <= {each[1] for each in words if each[0] == "bench" and len(each) > 1}
