"""Tables of made-up runs."""

from __future__ import annotations

from dataclasses import replace

from tests.bench.tenants.made import TIMES, made_run, mixed

from penstock.bench.tenants.meter import Turn
from penstock.bench.tenants.runs import JobRun, Run
from penstock.bench.tenants.tables import turns_table


def with_turns(run: Run) -> Run:
    """Of each job two turns in the measured part, and one before it."""
    begin = TIMES.warmup
    return replace(run, jobs=tuple(_with_turns(each, begin) for each in run.jobs))


def _with_turns(job: JobRun, begin: float) -> JobRun:
    rows, seconds = (100, 0.1) if job.job.group == "urgent" else (50_000, 1.0)
    turns = tuple(Turn(at, rows, 1, seconds, seconds) for at in (begin - 1.0, begin, begin + 3.0))
    return replace(job, turns=turns)


def test_turns_are_told_by_group_with_their_part_of_the_slots_and_those_of_the_warm_up_left_out() -> None:
    load = mixed(100_000.0)
    runs = [made_run("fifo", load, [1.0]), with_turns(made_run("ours", load, [1.0]))]
    table = turns_table(runs)
    assert table.columns == (
        "side",
        "tenants",
        "turns/s",
        "rows a turn",
        "s a turn",
        "slot us a row",
        "of the slots",
    )
    # Four jobs of each group, two turns each, in 20 s on two slots.
    assert table.rows == [
        ("ours", "urgent", "0.4", "100", "0.100", "1000.0", "2%"),
        ("ours", "bulk", "0.4", "50,000", "1.000", "20.0", "20%"),
    ]
