"""Shows a run while it lasts: a table that changes in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.demo import words
from penstock.workloads.share_run import Score, ShareRun

LINE_SECONDS = 5.0
BAR_WIDTH = 79


class View(Protocol):
    """Shows how far a run is. Used as a context: a terminal is given back however it ends."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, run: ShareRun) -> None: ...


def phase(run: ShareRun, seconds: float, now: float) -> tuple[str, float]:
    """What is going on, and which share of the run is over."""
    if run.started_at is None:
        return "starting Spark and eight queries", 0.0
    whole = run.warmup_seconds + seconds
    passed = min(now - run.started_at, whole)
    if passed < run.warmup_seconds:
        return f"warming up, {passed:.0f} of {run.warmup_seconds:.0f} s (not counted)", passed / whole
    return f"measuring, {passed - run.warmup_seconds:.0f} of {seconds:.0f} s", passed / whole


class LiveTable:
    """One row for each pipeline, four times a second; beside a run before it, if there was one."""

    def __init__(self, console: Console, seconds: float, before: ShareRun | None, clock: Callable[[], float]):
        self._seconds = seconds
        self._before = before
        self._clock = clock
        self._begun = clock()
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, run: ShareRun) -> None:
        self._live.update(self._drawn(run), refresh=True)

    def _drawn(self, run: ShareRun) -> RenderableType:
        now = self._clock()
        doing, done = phase(run, self._seconds, now)
        if run.started_at is None:
            doing += f", {now - self._begun:.0f} s"
        heading = Text.assemble((run.side.label, "bold"), "  ", (doing, "dim"))
        full = round(done * BAR_WIDTH)
        bar = Text.assemble(("━" * full, "blue"), ("━" * (BAR_WIDTH - full), "bright_black"))
        return Group(heading, bar, pipelines_table(run, now, self._before))


def pipelines_table(run: ShareRun, now: float, before: ShareRun | None = None) -> Table:
    """The figures of each pipeline so far."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("pipeline", no_wrap=True)
    for column in ("target", "results", "p50", "p99", "in time", "rows done"):
        table.add_column(column, justify="right", no_wrap=True, min_width=6)
    if before is not None:
        table.add_column(f"p50, {before.side.label}", justify="right", style="dim", no_wrap=True)
    counted = run.measured_from <= now
    group = run.loads[0].group
    for load, score in zip(run.loads, run.scores(now), strict=True):
        if table.row_count and load.group != group:
            table.add_row()
        group = load.group
        cells = _cells(score)
        if before is not None:
            cells.append(words.seconds(before.score(load, math.inf).p50))
        table.add_row(load.name, *cells, style="" if counted else "dim")
    return table


def _cells(score: Score) -> list[str | Text]:
    return [
        words.target(score.target_seconds),
        str(score.results),
        Text(words.seconds(score.p50), style=latency_style(score.p50, score.target_seconds)),
        Text(words.seconds(score.p99), style=latency_style(score.p99, score.target_seconds)),
        words.share(score.share_in_time),
        words.rows(score.rows_done),
    ]


def latency_style(latency: float, target: float) -> str:
    """Green within the target, red beyond."""
    if not math.isfinite(latency):
        return ""
    return "green" if latency <= target else "red"


class Lines:
    """A line every five seconds, for logs and pipes."""

    def __init__(self, say: Callable[[str], None], seconds: float, clock: Callable[[], float] = time.time):
        self._say = say
        self._seconds = seconds
        self._clock = clock
        self._last = -math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, run: ShareRun) -> None:
        now = self._clock()
        if now < self._last + LINE_SECONDS:
            return
        self._last = now
        doing, _ = phase(run, self._seconds, now)
        text = f"{run.side.label}: {doing}"
        if run.started_at is not None:
            urgent, bulky = run.group("urgent", now), run.group("bulky", now)
            text += f"; urgent p50 {words.seconds(urgent.p50)}, p99 {words.seconds(urgent.p99)}"
            text += f"; bulky rows {words.rows(bulky.rows_done)}"
        self._say(text)


def view_for(
    console: Console, seconds: float, before: ShareRun | None, clock: Callable[[], float] = time.time
) -> View:
    """The live table in a terminal, lines elsewhere."""
    if console.is_terminal:
        return LiveTable(console, seconds, before, clock)
    return Lines(lambda text: console.print(text, highlight=False, soft_wrap=True), seconds, clock)
