"""A table for each scenario: a line for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from textwrap import shorten

from penstock.bench.result import Table
from penstock.bench.tenants.runs import GroupRun, Run

ANSWER_WIDTH = 160
COLUMNS = (
    "side",
    "urgent p50 s",
    "p99 s",
    "in time",
    "missing",
    "bulk p50 s",
    "bulk rows done",
    "of offered",
    "fed late s",
)
TURN_COLUMNS = ("tenants", "turns/s", "rows a turn", "s a turn", "slot us a row", "of the slots")
LATE_SECONDS = 1.0


def place(run: Run, across: str) -> str:
    """Where a run stands among those of its scenario."""
    load = run.load
    bulk = [job for job in load.jobs if job.group == "bulk"]
    if across == "bulk tenants":
        return str(len(bulk))
    if across == "slots":
        return str(run.slots)
    if across == "error of costs, s":
        return f"{load.policy.settings.get('cost_error_seconds', 0.0):g}"
    if across == "policy":
        return str(load.policy)
    if across == "query":
        return load.jobs[0].query
    if across == "query, policy":
        return f"{load.jobs[0].query}, {load.policy}"
    if across == "rows a message":
        one = bulk[0]
        return f"{one.rows_per_second * one.message_seconds / one.sources:,.0f}"
    return f"{load.bulk_rows_per_second:,.0f}"


def table_of(title: str, runs: Sequence[Run], across: str) -> Table:
    return Table(title, (across, *COLUMNS), [(place(run, across), *_cells(run)) for run in runs])


def turns_table(runs: Sequence[Run]) -> Table:
    """What turns of each group took, of the slots and for a row; plain Spark has none."""
    rows = [
        (run.side, name, *_turn_cells(run, group))
        for run in runs
        for name, group in (("urgent", run.urgent), ("bulk", run.bulk))
        if group.turns_within(run.warmup, run.warmup + run.measured)
    ]
    return Table("turns", ("side", *TURN_COLUMNS), rows)


def _turn_cells(run: Run, group: GroupRun) -> tuple[str, ...]:
    turns = group.turns_within(run.warmup, run.warmup + run.measured)
    rows, seconds = sum(each.rows for each in turns), sum(each.seconds * each.slots for each in turns)
    return (
        f"{len(turns) / run.measured:.1f}",
        f"{median(each.rows for each in turns):,.0f}",
        f"{median(each.seconds for each in turns):.3f}",
        f"{1e6 * seconds / rows:.1f}" if rows else "",
        f"{seconds / run.measured / run.slots:.0%}",
    )


def real_time_table(said: Mapping[str, Mapping[str, str]]) -> Table:
    """What Spark said to each form of each query in real-time mode; the whole of it is in the JSON file."""
    rows = [
        (query, form, shorten(answer, ANSWER_WIDTH) if answer else "runs")
        for query, forms in said.items()
        for form, answer in forms.items()
    ]
    return Table("Spark's real-time mode", ("query", "tried as", "Spark"), rows)


def _cells(run: Run) -> tuple[str, ...]:
    urgent, bulk = run.urgent, run.bulk
    return (
        run.side,
        f"{urgent.p50:.2f}",
        f"{urgent.p99:.2f}",
        f"{urgent.in_time:.1%}",
        str(urgent.missing),
        *_bulk_cells(bulk),
        f"{run.feeder_lag_seconds:.1f}" if run.feeder_lag_seconds > LATE_SECONDS else "",
    )


def _bulk_cells(bulk: GroupRun) -> tuple[str, str, str]:
    if not bulk.jobs:
        return "", "", ""
    share = f"{bulk.done / bulk.offered:.0%}" if bulk.offered else ""
    return f"{bulk.p50:.2f}", f"{bulk.done:,.0f}", share
