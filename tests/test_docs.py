"""Every Python block of README.md and docs/ runs, in the order of its file; other blocks can be read.

A comment before a block, which readers do not see, may prepare it (`<!-- first:` and code), change it
(`<!-- here: 60 -> 3 -->`, where TMP is the test's folder, as the JVM has another), or keep it from being run,
with the reason (`<!-- not run: ... -->`).
"""

from __future__ import annotations

import builtins
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock import Engine

ROOT = Path(__file__).parents[1]
PARTS = re.compile(r"<!-- (first|here|not run):(.*?)-->|```python\n(.*?)```", re.DOTALL)
NEEDS_SPARK = re.compile(r"\b(Engine|engine|spark)\b")


@dataclass
class Block:
    """A piece of code with what is told of it."""

    code: str
    first: str = ""
    changes: list[tuple[str, str]] = field(default_factory=list)

    @property
    def runs(self) -> str:
        code = self.code
        for old, new in self.changes:
            assert old in code, f"the block has no {old!r} to be changed"
            code = code.replace(old, new.replace("TMP", str(Path.cwd())))
        return f"{self.first}\n{code}"


def blocks_of(text: str) -> Iterator[Block]:
    """Those to run, in order."""
    first, changes, skipped = "", [], False
    for kind, told, code in PARTS.findall(text):
        if kind == "first":
            first = told.strip()
        elif kind == "here":
            old, _, new = told.strip().partition(" -> ")
            changes.append((old, new))
        elif kind == "not run":
            assert len(told.strip()) > 10, "a block that is not run must say why"
            skipped = True
        else:
            if not skipped:
                yield Block(code, first, changes)
            first, changes, skipped = "", [], False


PAGES = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if any(True for _ in blocks_of(path.read_text()))
)


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builtins, "input", lambda prompt="": time.sleep(3.0))
    blocks = list(blocks_of((ROOT / page).read_text()))
    names: dict[str, Any] = {"__name__": "__main__"}
    if any(NEEDS_SPARK.search(block.runs) for block in blocks):
        spark: SparkSession = request.getfixturevalue("spark")
        names["spark"] = spark
    engines = started_engines(monkeypatch)
    try:
        for block in blocks:
            exec(compile(block.runs, str(page), "exec"), names)
    finally:
        for engine in engines:
            engine.stop()


DATA = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.spark
def test_json_sql_and_yaml_of_the_pages_can_be_read_and_there_are_no_other_blocks(
    spark: SparkSession,
) -> None:
    """By Python, by Spark's own parser of expressions, and by the YAML reader among Spark's jars."""
    assert spark._jvm is not None
    sql, yaml = spark._jsparkSession.sessionState().sqlParser(), spark._jvm.org.yaml.snakeyaml.Yaml()
    read = {
        "json": json.loads,
        "sql": sql.parseExpression,
        "yaml": yaml.load,
        "python": lambda code: compile(code, "page", "exec"),
        "mermaid": lambda drawing: None,  # GitHub draws it
    }
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for kind, text in DATA.findall(page.read_text()):
            assert kind in read, f"{page.name} has a block of kind {kind!r}"
            read[kind](text)
    groups = yaml.load((ROOT / "docs/prometheus-alerts.yml").read_text())["groups"]
    assert len(groups[0]["rules"]) > 8


def started_engines(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """Those that are made from now on: what a page starts, and leaves to its reader, must end here."""
    from penstock.spark.engine import Engine

    started: list[Engine] = []
    make = Engine.__init__

    def made(self: Engine, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        started.append(self)

    monkeypatch.setattr(Engine, "__init__", made)
    return started


def test_blocks_are_prepared_changed_or_left_out() -> None:
    text = (
        "<!-- first: a = 1 -->\n```python\nb = a + 60\n```\n<!-- here: 60 -> 3 -->\n```python\nc = 60\n```\n"
        "<!-- not run: it would never end -->\n```python\nwhile True: pass\n```\n```python\nd = 4\n```\n"
    )
    names: dict[str, int] = {}
    for block in blocks_of(text):
        exec(block.runs, names)
    assert [names[name] for name in "abcd"] == [1, 61, 3, 4]
