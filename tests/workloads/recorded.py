"""Runs of the shared pool as a worker would tell them, made by hand."""

from penstock.measure.rate_clock import RateClock
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import LOADS, SIDES

CREATED_MS = 1_700_000_000_500
STARTED_AT = CREATED_MS / 1000 + 0.5
WARMUP_SECONDS = 10.0


def recorded_run(side: str, latency_seconds: float, *, seconds: float = 20.0) -> ShareRun:
    """Every window's result comes `latency_seconds` after it is complete, each in a batch of its own."""
    run = ShareRun(SIDES[side], WARMUP_SECONDS)
    ended_at = STARTED_AT + WARMUP_SECONDS + seconds
    run.take({"event": "started", "at": STARTED_AT})
    for load in LOADS:
        clock = RateClock(CREATED_MS, load.rows_per_second)
        run.take({"event": "source", "pipeline": load.name, "created_ms": CREATED_MS})
        for end, completed in clock.completed_between(load.window_seconds, 0.0, ended_at):
            at = completed + latency_seconds
            rows = clock.rows_in(end, load.window_seconds) or 7
            batch = {"pipeline": load.name, "at": at, "seconds_read": clock.due_seconds(completed + 1e-6)}
            if at <= ended_at:
                run.take({"event": "batch", **batch, "windows": [[end, rows]]})
    run.take({"event": "ended", "at": ended_at})
    return run
