"""Prints a bench's result, and writes its JSON file and plots."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from penstock.bench import result as results
from penstock.bench.result import BenchResult, Plot

WIDTH = 110


def report(
    result: BenchResult,
    path: Path,
    *,
    machine: Mapping[str, object],
    command: str,
    console: Console | None = None,
) -> None:
    """Writes the file and its plots, then prints the figures, where the files are, and how to repeat it."""
    result.setup = {"command": command, "machine": dict(machine), **result.setup}
    write_json(result, path)
    pictures = [save_plot(plot, path) for plot in result.plots]
    console = console or Console(width=WIDTH)
    for table in result.tables:
        console.print(_plain_table(table))
    console.print(figures_table(result))
    if result.missed:
        console.print(f"[bold red]missed: {', '.join(result.missed)}[/]")
    console.print("written to", *[str(each) for each in (path, *pictures)], soft_wrap=True)
    console.print("repeat with", command, soft_wrap=True, highlight=False)


def write_json(result: BenchResult, path: Path) -> None:
    """The figures and how they came about, and nothing else; a figure that is not a number is null."""
    figures = {name: value if math.isfinite(value) else None for name, value in result.figures.items()}
    told = {"bench": result.bench, "figures": figures, "setup": result.setup}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told, indent=2, default=str) + "\n")


def save_plot(plot: Plot, path: Path) -> Path:
    """Draws a plot without a display; where it lies."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    picture = path.with_name(f"{path.stem}-{plot.name}.png")
    figure = pyplot.figure(figsize=(8, 4.5), layout="constrained")
    try:
        plot.draw(figure)
        figure.savefig(picture, dpi=120)
    finally:
        pyplot.close(figure)
    return picture


def figures_table(result: BenchResult) -> Table:
    """Each figure with its spread, its mark, and whether it reaches it."""
    table = Table(title=f"bench {result.bench}", title_justify="left")
    for column in ("figure", "value", "spread", "runs", "mark", ""):
        table.add_column(column, justify="right" if column in ("value", "runs") else "left", no_wrap=True)
    for name in [*result.figures, *(name for name in result.marks if name not in result.figures)]:
        table.add_row(name, *_cells(result, name))
    return table


def _cells(result: BenchResult, name: str) -> tuple[str, str, str, str, str]:
    mark = result.marks.get(name)
    if name not in result.figures:
        return "-", "", "", str(mark), "[red]missing[/]"
    value = result.figures[name]
    spread = result.setup.get("spread", {}).get(name)
    runs = result.setup.get("runs", {}).get(name)
    verdict = "" if mark is None else "[green]ok[/]" if mark.met_by(value) else "[bold red]missed[/]"
    return (
        number(value),
        "" if spread is None else f"{number(spread[0])} to {number(spread[1])}",
        "" if runs is None else str(runs),
        "" if mark is None else str(mark),
        verdict,
    )


def number(value: float) -> str:
    """Three significant digits, whole numbers in full.

    >>> [number(value) for value in (3.14159, 46.25, 1234.5, 0.0123, 7, 27600000)]
    ['3.14', '46.2', '1,234', '0.0123', '7', '27,600,000']
    """
    if not math.isfinite(value):
        return "not a number"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _plain_table(described: results.Table) -> Table:
    table = Table(title=described.title, title_justify="left")
    for place, column in enumerate(described.columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row in described.rows:
        table.add_row(*row)
    return table
