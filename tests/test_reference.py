"""The reference is made from the docstrings, and the committed one is that of the code as it is."""

from __future__ import annotations

import re

from scripts.reference import PAGE, page, text_of

import penstock


def test_the_committed_reference_is_current() -> None:
    assert PAGE.read_text() == page(), "run scripts/reference.py"


def test_everything_public_is_in_it() -> None:
    text = PAGE.read_text()
    for name in {*penstock.__all__} - {"__version__", "sinks", "sources"}:
        assert f"\n### {name}\n" in text
    for module in (penstock.sources, penstock.sinks):
        own = [value for value in vars(module).values() if hasattr(value, "__dataclass_fields__")]
        assert own
        assert all(f"\n### {value.__name__}\n" in text for value in own)


def test_every_entry_says_something() -> None:
    entries = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert [each.splitlines()[0] for each in entries if len(each.split("\n", 1)[1].strip()) < 10] == []


def test_an_example_of_a_docstring_becomes_a_block_of_its_own() -> None:
    def told() -> None:
        """What it does.

        >>> 1 + 1
        2

        And more.
        """

    assert text_of(told) == "What it does.\n\n    >>> 1 + 1\n    2\n\nAnd more."
