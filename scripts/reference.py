#!/usr/bin/env python3
"""Writes docs/reference.md from the docstrings and signatures of what users call, and the commands' options.

.venv/bin/python scripts/reference.py
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from penstock.bench.catalog import BENCHES, add_arguments_of, bench_named  # noqa: E402
from penstock.cli.main import COMMANDS, parser_of  # noqa: E402
from penstock.scheduling.catalog import POLICIES  # noqa: E402

PAGE = ROOT / "docs" / "reference.md"
HEAD = """# Reference

Made from the docstrings by `scripts/reference.py`: change those. [Guides](README.md) say what is for what.
"""


@dataclass(frozen=True)
class Part:
    """A heading, the module and the names of it that stand under it, and which members of classes."""

    title: str
    module: str
    names: tuple[str, ...] = ()
    members: tuple[str, ...] | None = ()
    """None: all that are public and have a docstring."""


PARTS = (
    Part("Pipelines", "penstock.pipeline.pipeline", ("Pipeline",), ("source", "loop", "stream", "check")),
    Part("Streams", "penstock.pipeline.stream", ("Stream",), None),
    Part("Tenants", "penstock.pipeline.tenant", ("Tenant",)),
    Part("Sources: `penstock.sources`", "penstock.pipeline.sources"),
    Part("Sinks: `penstock.sinks`", "penstock.pipeline.sinks"),
    Part("The engine", "penstock.spark.engine", ("Engine",), None),
    Part("Spools", "penstock.queues.spool", ("Spool",), ("append", "append_together", "free_bytes", "close")),
    Part("Slots that are controlled", "penstock.plan.controller_state", ("SlotSettings",)),
    Part("How slots are measured", "penstock.measure.slot_figures", ("SlotMeasuring",)),
    Part("Replicas and nodes", "penstock.spark.elastic", ("ElasticSettings",)),
    Part(
        "What an engine tells", "penstock.spark.reports", ("StageReport", "SinkReport", "TenantReport"), None
    ),
    Part("Passwords and certificates", "penstock.secret", ("Secret", "Tls"), None),
    Part("Watching", "penstock.dashboard", ("Watch", "Dashboard"), ("fresh", "seconds", "url", "close")),
    Part("OpenTelemetry", "penstock.dashboard.otel", ("export",)),
    Part("Operators: recurrences", "penstock.operators.scan"),
    Part("Operators: privacy", "penstock.operators.privacy", members=None),
    Part("Operators: RIoTBench", "penstock.operators.riot"),
    Part("Operators: text", "penstock.operators.text"),
    Part("Operators: vision", "penstock.operators.vision"),
)


def page() -> str:
    """The whole file."""
    sections = [*(part_of(each) for each in PARTS), policies(), commands(), benches()]
    return "\n".join([HEAD, *sections]).rstrip() + "\n"


def part_of(part: Part) -> str:
    """One section: its module's first sentence, and its entries."""
    module = import_module(part.module)
    lines = [f"## {part.title}", ""]
    if not part.names:
        lines += [text_of(module), ""]
    for name in part.names or names_in(module):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            lines += entry(value, part.members)
    return "\n".join(lines)


def names_in(module: Any) -> Iterable[str]:
    """What a module offers: its `__all__`, or its public functions and settings, in the order of its file."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and value.__doc__
        and (
            (inspect.isfunction(value) and value.__module__ == module.__name__)
            or (inspect.isclass(value) and dataclasses.is_dataclass(value))
        )
    ]


def entry(value: Any, members: tuple[str, ...] | None) -> Iterator[str]:
    """A class or a function: one line of how it is called, its docstring, and the members asked for."""
    yield from (f"### {value.__name__}", "", f"`{call_of(value)}`", "")
    yield text_of(value)
    yield ""
    if inspect.isclass(value):
        found = list(members_of(value, members))
        for name, member in found:
            yield f"- **`{call_of(member, name)}`**  "
            yield textwrap.indent(text_of(member), "  ")
        yield from [""] if found else []


def members_of(kind: type, wanted: tuple[str, ...] | None) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a class, those of its bases after its own."""
    seen: set[str] = set()
    for base in kind.__mro__[:-1]:
        if not base.__module__.startswith("penstock"):
            continue
        for name, value in vars(base).items():
            member = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            known = inspect.isfunction(member) or isinstance(member, property)
            if name.startswith("_") or name in seen or not known or not member.__doc__:
                continue
            if wanted is None or name in wanted:
                seen.add(name)
                yield name, member


def call_of(value: Any, name: str = "") -> str:
    """How something is called, on one line."""
    if isinstance(value, property):
        return f"{name}{returns_of(value.fget)}"
    if inspect.isclass(value):
        if dataclasses.is_dataclass(value):
            return f"{value.__name__}({', '.join(fields_of(value))})"
        own = value.__init__
        return f"{value.__name__}({arguments_of(own) if inspect.isfunction(own) else ''})"
    return f"{value.__name__}({arguments_of(value)}){returns_of(value)}"


def fields_of(kind: Any) -> Iterator[str]:
    defaults = {name: text for base in kind.__mro__[-2::-1] for name, text in defaults_in(base)}
    for each in dataclasses.fields(kind):
        if not each.init or each.name.startswith("_"):
            continue
        yield f"{each.name}: {each.type}{defaults.get(each.name, '')}"


def defaults_in(kind: type) -> Iterator[tuple[str, str]]:
    """As they stand in the source; what is made anew for each object is left out."""
    [found] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(found, ast.ClassDef)
    for line in found.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
            text = ast.unparse(line.value)
            yield line.target.id, " = ..." if text.startswith("field(") else f" = {text}"


def arguments_of(function: Any) -> str:
    """As they stand in the source, which no version of Python prints otherwise."""
    arguments = definition(function).args
    for given in (arguments.posonlyargs, arguments.args):
        given[:] = [each for each in given if each.arg not in ("self", "cls")]
    return ast.unparse(arguments)


def returns_of(function: Any) -> str:
    returns = definition(function).returns
    return "" if returns is None else f" -> {ast.unparse(returns)}"


def definition(function: Any) -> ast.FunctionDef:
    [found] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(found, ast.FunctionDef)
    return found


def text_of(value: Any) -> str:
    """Its docstring; examples as blocks."""
    lines, inside = [], False
    for line in inspect.cleandoc(value.__doc__ or "").splitlines():
        starts = line.startswith(">>>")
        if starts and not inside and lines and lines[-1]:
            lines.append("")
        inside = starts or (inside and line != "")
        lines.append(f"    {line}" if inside else line)
    return "\n".join(lines)


def policies() -> str:
    lines = ["## Policies", "", "`Engine(policy=...)`, by name or as an object.", ""]
    for name, kind in POLICIES.items():
        lines += [f"### {name}", "", f"`{call_of(kind)}`", "", text_of(kind), ""]
    return "\n".join(lines)


def commands() -> str:
    lines = ["## Commands", ""]
    for command in COMMANDS:
        lines += [f"### `penstock {command.name}`", "", f"{sentence(command.help)}", ""]
        lines += [*options_of(parser_of(command)), ""]
    return "\n".join(lines)


def benches() -> str:
    lines = ["## Benches", "", "`penstock bench NAME`; all take `--json FILE` and `--quick`.", ""]
    for name, bench in BENCHES.items():
        parser = argparse.ArgumentParser(prog=f"penstock bench {name}")
        add_arguments_of(bench_named(name), parser)
        lines += [f"### `penstock bench {name}`", "", sentence(bench.help), "", *options_of(parser), ""]
    return "\n".join(lines)


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """One line for each argument, written here as Pythons differ in how they print them."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield f"- `{name}`"
                yield from (f"  {line}" for line in options_of(below))
        elif action.help is not argparse.SUPPRESS and action.dest != "help":
            choices = "|".join(map(str, action.choices or ()))
            value = "" if action.nargs == 0 else f" {action.metavar or choices or action.dest.upper()}"
            name = f"{', '.join(action.option_strings)}{value}" if action.option_strings else value.strip()
            told = formatter._expand_help(action) if action.help else ""
            yield f"- `{name}`: {told}" if told else f"- `{name}`"


def main() -> None:
    PAGE.write_text(page())
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
