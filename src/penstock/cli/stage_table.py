"""The tables of stages and pipelines that `penstock run` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table

if TYPE_CHECKING:
    from penstock.measure.congestion import Congestion
    from penstock.scheduling.running_turns import CutCount
    from penstock.spark.engine import Engine
    from penstock.spark.reports import SinkReport, StageReport
    from penstock.spark.running import RunningPipeline

# Two lines each, as numbers are shorter than their names.
COLUMNS = (
    "\nstage",
    "rows\nwaiting",
    "\nturns",
    "rows\ntaken",
    "come\nrows/s",
    "take\nrows/s",
    "rows\nout:in",
    "slots\nw",
    "\nbusy",
    "T_Q\nms",
    "T_S\nms",
    "T_C\nms",
    "p50\ns",
    "p99\ns",
    "target\ns",
    "in\ntime",
)
PIPELINE_COLUMNS = (
    "\npipeline",
    "come\nrows/s",
    "highest predicted\nrows/s",
    "slots\nw",
    "busy\nCV",
    "w*r/q\nCV",
)
BALANCE_COLUMNS = ("\nstage", "slots\nw", "input\nq", "service\nr", "\nw*r/q")


TENANT_COLUMNS = (
    "\ntenant",
    "target\ns",
    "\nshare",
    "\nresults",
    "in\ntime",
    "p50\ns",
    "p99\ns",
    "slot\nseconds",
)


def run_tables(engine: Engine, running: Sequence[RunningPipeline]) -> Group:
    """The stages, below them how evenly the pipelines' load is served, and what the tenants got."""
    tables = (
        stage_table(engine, running),
        balance_table(engine),
        pipeline_table(engine),
        tenant_table(engine),
    )
    cuts = cuts_line(engine.cuts)
    return Group(*tables, cuts) if cuts else Group(*tables)


def cuts_line(cuts: CutCount) -> str:
    """How often turns were cut for a stage in a hurry, and how often that was in vain; "" if never.

    >>> from penstock.scheduling.running_turns import CutCount
    >>> cuts_line(CutCount(made=40, overran=3))
    '40 turns were cut for others; 3 of them (7.5%) took longer than predicted'
    """
    if not cuts.made:
        return ""
    return (
        f"{cuts.made:,} turns were cut for others; {cuts.overran:,} of them "
        f"({cuts.overran / cuts.made:.1%}) took longer than predicted"
    )


def tenant_table(engine: Engine) -> Table:
    """One line for each tenant: what was promised, what it got since the start, and what it took."""
    table = _table(TENANT_COLUMNS)
    for tenant in engine.tenants():
        seen = tenant.results > 0
        table.add_row(
            tenant.name,
            _known(tenant.latency_seconds, "g"),
            _known(tenant.share, ".0%"),
            f"{tenant.results:,.0f}",
            _known(tenant.in_time if seen and tenant.latency_seconds else None, ".1%"),
            _known(tenant.p50 if seen else None, ".3f"),
            _known(tenant.p99 if seen else None, ".3f"),
            f"{tenant.slot_seconds:,.1f}",
        )
    return table


def pipeline_table(engine: Engine) -> Table:
    """One line for each pipeline: its input, the highest that its stages could take, how even they are."""
    table = _table(PIPELINE_COLUMNS)
    for name, congestion in engine.congestion().items():
        table.add_row(name, *_pipeline_cells(congestion))
    return table


def balance_table(engine: Engine) -> Table:
    """One line for each stage that rows came to, relative to the first of its pipeline."""
    table = _table(BALANCE_COLUMNS)
    for congestion in engine.congestion().values():
        for each in congestion.stages:
            numbers = (each.weight, each.relative_input, each.relative_service, each.balance)
            table.add_row(each.stage, *(f"{number:.2f}" for number in numbers))
    return table


def _table(columns: Sequence[str], title: str | None = None) -> Table:
    """A table without lines between its columns: there are many, and a terminal is narrow."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=0)
    table.add_column(columns[0], overflow="fold")  # the one that gives way
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _pipeline_cells(congestion: Congestion) -> tuple[str, ...]:
    return (
        _known(congestion.input_rows_per_second, ",.0f"),
        _known(congestion.highest_rows_per_second, ",.0f"),
        f"{sum(each.weight for each in congestion.stages):.2f} of {congestion.slots}",
        _known(congestion.utilisation_cv, ".2f"),
        _known(congestion.weight_cv, ".2f"),
    )


def _known(value: float | None, form: str) -> str:
    """Empty where it is not known."""
    return "" if value is None else format(value, form)


def stage_table(engine: Engine, running: Sequence[RunningPipeline]) -> Table:
    """One line for each stage: its queue, turns, rates and times of the last minute, its sink's latency."""
    table = _table(COLUMNS, _title(running))
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
        f"{figures.arrival_rows_per_second:,.0f}",
        _known(figures.service_rows_per_second if figures.rows_in else None, ",.0f"),
        _known(figures.selectivity if figures.rows_in else None, ".2f"),
        _known(figures.slot_seconds / figures.seconds if figures.seconds > 0.0 else None, ".2f"),
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
