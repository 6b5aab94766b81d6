"""The outcome of a demo in figures: the same rows for the terminal and for the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from penstock.demo import words
from penstock.demo.live import latency_style
from penstock.workloads.share_run import Score, ShareRun, ratio
from penstock.workloads.shared_pool import GROUPS

COLUMNS = (
    "pipelines",
    "run by",
    "target",
    "results",
    "missing",
    "p50",
    "p99",
    "in time",
    "rows done",
    "backlog",
)
TERMINAL_COLUMNS = tuple(column for column in COLUMNS if column not in ("missing", "backlog"))


@dataclass(frozen=True)
class Line:
    """A group of pipelines on one side."""

    group: str
    side: str
    score: Score

    @property
    def cells(self) -> tuple[str, ...]:
        score = self.score
        return (
            self.group,
            self.side,
            words.target(score.target_seconds),
            str(score.results),
            str(score.missing),
            words.seconds(score.p50),
            words.seconds(score.p99),
            words.share(score.share_in_time),
            words.rows(score.rows_done),
            words.rows(score.backlog_rows),
        )


def lines(runs: Sequence[ShareRun]) -> list[Line]:
    """Each group on each side."""
    return [Line(f"4 {group}", run.side.label, run.group(group)) for group in GROUPS for run in runs]


def summary_table(runs: Sequence[ShareRun]) -> Table:
    """The lines for a terminal of 80 columns; what is not there is in the report."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for place, column in enumerate(TERMINAL_COLUMNS):
        table.add_column(column, justify="left" if place < 2 else "right", no_wrap=True)
    told = lines(runs)
    for place, line in enumerate(told):
        if place and line.group != told[place - 1].group:
            table.add_row()
        table.add_row(*_styled(line, ours=line.side == runs[-1].side.label))
    return table


def _styled(line: Line, ours: bool) -> list[Text]:
    styles = {
        "run by": "bold" if ours else "",
        "p50": latency_style(line.score.p50, line.score.target_seconds),
        "p99": latency_style(line.score.p99, line.score.target_seconds),
    }
    cells = dict(zip(COLUMNS, line.cells, strict=True))
    return [Text(cells[column], style=styles.get(column, "")) for column in TERMINAL_COLUMNS]


def verdict(before: ShareRun, after: ShareRun) -> str:
    """The outcome in one sentence."""
    slow, fast = before.group("urgent"), after.group("urgent")
    rows = f"{_done(after)} of the bulky rows done, against {_done(before)}"
    ratios = f"{words.times(ratio(slow.p50, fast.p50))} and {words.times(ratio(slow.p99, fast.p99))}"
    times = f": {ratios} as long" if slow.results and fast.results else ""
    return (
        f"Urgent results came {_when(fast)} under {after.side.label}, {_when(slow)} on {before.side.label}"
        f"{times}; {rows}."
    )


def _when(score: Score) -> str:
    if not score.results:
        return "not once in the time measured"
    return f"after {words.seconds(score.p50)} (p50) and {words.seconds(score.p99)} (p99)"


def _done(run: ShareRun) -> str:
    return words.share(run.group("bulky").share_done)
