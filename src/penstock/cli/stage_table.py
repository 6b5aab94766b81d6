"""The table of stages that `penstock run` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from penstock.spark.engine import Engine
    from penstock.spark.reports import SinkReport, StageReport
    from penstock.spark.running import RunningPipeline

COLUMNS = (
    "stage",
    "waiting",
    "turns",
    "rows",
    "busy",
    "T_Q ms",
    "T_S ms",
    "T_C ms",
    "p50 s",
    "p99 s",
    "target s",
    "in time",
)


def stage_table(engine: Engine, running: Sequence[RunningPipeline]) -> Table:
    """One line for each stage: its queue, its turns and times of the last minute, and its sink's latency."""
    table = Table(title=_title(running), title_justify="left")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "stage" else "right", no_wrap=True)
    sinks = {(report.pipeline, report.sink): report for report in engine.sinks()}
    for stage in engine.stages():
        table.add_row(*_stage_cells(stage), *_sink_cells(_sink_of(stage, running, sinks)))
    return table


def summary_line(engine: Engine, running: Sequence[RunningPipeline]) -> str:
    """The same in one line, where no terminal can show a table."""
    stages = engine.stages()
    waiting = sum(stage.figures.rows_waiting for stage in stages)
    turns = sum(stage.figures.total_turns for stage in stages)
    return f"{_title(running)}: {turns:,} turns, {waiting:,} rows waiting"


def _title(running: Sequence[RunningPipeline]) -> str:
    return ", ".join(f"{each.name} {each.state}" for each in running)


def _sink_of(
    stage: StageReport, running: Sequence[RunningPipeline], sinks: dict[tuple[str, str], SinkReport]
) -> SinkReport | None:
    pipeline = next(each for each in running if each.name == stage.pipeline)
    declared = pipeline.graph.stage(stage.stage).sink
    return None if declared is None else sinks.get((stage.pipeline, declared.name))


def _stage_cells(stage: StageReport) -> tuple[str, ...]:
    figures = stage.figures
    return (
        stage.stage,
        f"{figures.rows_waiting:,}",
        f"{figures.total_turns:,}",
        f"{figures.total_rows_in:,}",
        f"{figures.utilisation:.0%}",
        f"{figures.queue_seconds * 1000:.0f}",
        f"{figures.schedule_seconds * 1000:.0f}",
        f"{figures.compute_seconds * 1000:.0f}",
    )


def _sink_cells(sink: SinkReport | None) -> tuple[str, ...]:
    """Empty where the stage has no sink, or nothing has arrived at it."""
    if sink is None:
        return ("", "", "", "")
    target = "" if sink.target_seconds is None else f"{sink.target_seconds:g}"
    if not sink.latency.count:
        return ("", "", target, "")
    share = "" if sink.target_seconds is None else f"{sink.share_in_time:.1%}"
    return f"{sink.latency.quantile(0.5):.3f}", f"{sink.latency.quantile(0.99):.3f}", target, share
