"""Three tenants with 20, 40 and 40 per cent of the tokens, started one after the other (figure 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.result import BenchResult, Plot, Table, at_most
from penstock.bench.stats import Summary
from penstock.bench.tenants import plots
from penstock.bench.tenants.load import Load
from penstock.bench.tenants.runs import Run
from penstock.bench.tenants.stand import Stand, Times
from penstock.workloads.tenants.groups import Job

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (0.2, 0.4, 0.4)
WINDOW_SECONDS = 10
OVERLOAD = 1.5


def sharing_jobs(stand: Stand, rows_per_second: float, apart: float) -> tuple[Job, ...]:
    """Tenants that each want one and a half times their share of `rows_per_second`, started apart."""
    made = stand.bulk_jobs(rows_per_second, len(SHARES))
    return tuple(
        replace(
            job,
            rows_per_second=OVERLOAD * share * rows_per_second,
            share=share,
            starts_at=number * apart,
        )
        for number, (job, share) in enumerate(zip(made, SHARES, strict=True))
    )


def share_scenario(stand: Stand, result: BenchResult) -> None:
    """Throughput shares under overload, in windows of 10 s after the third start."""
    apart = stand.times.warmup / 2
    able = stand.able(
        "ours",
        lambda rows: Load(sharing_jobs(stand, rows / OVERLOAD, 0.0)).under(
            "token-share", rows_per_second=rows
        ),
    )
    load = Load(sharing_jobs(stand, able, apart)).under("token-share", rows_per_second=able)
    times = Times(2 * apart, stand.times.measured)
    run = stand.run("ours", load, times=times)
    windows = shares_by_window(run)
    result.put("share_error", share_error(windows), at_most(0.05))
    # The first window has the third tenant's state to build.
    result.put("share_error_settled", share_error(windows[1:]))
    result.tables.append(
        Table(
            "share",
            ("seconds", *(job.name for job in load.jobs)),
            [(f"{at:.0f}", *(f"{each:.1%}" for each in shares)) for at, shares in windows],
        )
    )
    result.plots.append(Plot("share", partial(_draw, run=run)))


def shares_by_window(run: Run) -> list[tuple[float, tuple[float, ...]]]:
    """(second of the run, each tenant's part of the rows done), for windows of 10 s of the measured part."""
    found = []
    begin, end = math.ceil(run.warmup), len(run.jobs[0].done_by_second)
    for first in range(begin, end - WINDOW_SECONDS + 1, WINDOW_SECONDS):
        rows = [sum(each.done_by_second[first : first + WINDOW_SECONDS]) for each in run.jobs]
        total = sum(rows)
        found.append((float(first), tuple(each / total if total else math.nan for each in rows)))
    return found


def share_error(windows: Sequence[tuple[float, tuple[float, ...]]]) -> Summary:
    """The greatest deviation from the shares wanted; the range is that of the windows' own."""
    errors = [
        max(abs(share - wanted) for share, wanted in zip(shares, SHARES, strict=True))
        for _, shares in windows
    ]
    if not errors or any(math.isnan(error) for error in errors):
        return Summary(math.nan, math.nan, math.nan, 1)
    return Summary(max(errors), min(errors), max(errors), 1)


def _draw(figure: Figure, run: Run) -> None:
    plots.draw_throughput(figure, run, WINDOW_SECONDS)
