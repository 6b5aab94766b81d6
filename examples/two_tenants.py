"""Two tenants on one engine: one must have its results within 2 s, the other within a minute.

    python examples/two_tenants.py [FOLDER]

Both get windows of the same kind; the second has twenty times the rows. At the end each tenant's share of
results in time is shown, and why the last turns were granted. The first seconds are cold, as Spark compiles
what it runs: results of then are late.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from penstock import Engine, Pipeline, Tenant, sinks, sources

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def clicks(count: int, seconds: float) -> pa.Table:
    return pa.table(
        {
            "ad": [f"ad{number % 50}" for number in range(count)],
            "at": [NOON + timedelta(seconds=seconds * number / count) for number in range(count)],
        }
    )


def counted(tenant: Tenant, rows_per_second: int, folder: Path) -> Pipeline:
    """Clicks per ad and second, for six seconds."""
    pipeline = Pipeline(f"clicks_{tenant.name}", tenant=tenant)
    trace = clicks(6 * rows_per_second, 6.0)
    rows = pipeline.source("clicks", sources.Replay(trace, rows_per_second, loop=False))
    per_second = rows.window("per second", on="at", size="1s", by="ad", aggregate="count(*) as clicks")
    per_second.sink("counts", sinks.Parquet(folder / tenant.name))
    return pipeline


def main(folder: Path) -> None:
    with Engine(state=folder / "state", policy="llf") as engine:
        engine.submit(counted(Tenant("bidding", latency="2s"), 1_000, folder))
        engine.submit(counted(Tenant("billing", latency="1m"), 20_000, folder))
        engine.drain()
        for tenant in engine.tenants():
            print(f"{tenant.name}: {tenant.in_time:.0%} in time, {tenant.slot_seconds:.1f} s of slots")
        for decision in engine.decisions(n=3):
            print(decision.reason)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "penstock-examples/two_tenants"))
