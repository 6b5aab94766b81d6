"""How long rows of a subject still pass access control, in a running engine, after it has revoked."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.operators.privacy.access import access_control
from penstock.operators.privacy.policies import Policy, PolicyTable
from penstock.pipeline import sinks, sources
from penstock.pipeline.pipeline import Pipeline
from penstock.queues.spool import Spool
from penstock.spark.engine import Engine
from penstock.spark.feeders import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_SECONDS = 0.02
PASS_SECONDS = 60.0
SCHEMA = "subject STRING, at TIMESTAMP"
CONSENT = Policy("somebody", "cafe", ["greeting"])


def policy_change_seconds(session: SparkSession, trials: int = 5, refresh: float = 1.0) -> list[float]:
    """Of each trial, from the return of `.revoke()` to the last row at the sink."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="penstock-policies-") as scratch:
        folder = Path(scratch)
        policies = PolicyTable(folder / "policies.jsonl", refresh)
        policies.write([])
        with (
            Spool(folder / "rows") as spool,
            Engine(session, state=folder / "state", slots=1) as engine,
            _Feeder(spool),
        ):
            seen = _Seen()
            engine.submit(_pipeline(spool, policies, seen))
            return [_trial(policies, seen, refresh, chance) for _ in range(trials)]


def _pipeline(spool: Spool, policies: PolicyTable, seen: _Seen) -> Pipeline:
    pipeline = Pipeline("policy_change")
    rows = pipeline.source("rows", sources.FromSpool(spool, SCHEMA))
    allowed = rows.operator("access", access_control(policies, consumer="cafe", purpose="greeting"))
    allowed.sink("seen", sinks.Callback(seen))
    return pipeline


def _trial(policies: PolicyTable, seen: _Seen, refresh: float, chance: random.Random) -> float:
    before = time.monotonic()
    policies.allow(CONSENT)
    if not wait_for(lambda: seen.last > before, PASS_SECONDS):
        raise PenstockError(f"rows must pass once they are allowed, but none did in {PASS_SECONDS:g} s")
    # Anywhere between two looks at the table.
    time.sleep(chance.uniform(0, refresh))
    policies.revoke(CONSENT.subject)
    revoked = time.monotonic()
    quiet = 2 * refresh + 1
    if not wait_for(lambda: time.monotonic() - max(seen.last, revoked) > quiet, PASS_SECONDS + quiet):
        raise PenstockError(f"a revocation must hold some time, but rows still pass after {PASS_SECONDS:g} s")
    return max(seen.last - revoked, 0.0)


class _Seen:
    """When rows last came to the sink."""

    def __init__(self) -> None:
        self.last = 0.0

    def __call__(self, table: pa.Table, batch: int) -> None:
        if table.num_rows:
            self.last = time.monotonic()


class _Feeder:
    """Appends a row of the subject again and again, as long as it is open."""

    def __init__(self, spool: Spool):
        self._spool = spool
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def _feed(self) -> None:
        kinds = pa.schema([("subject", pa.string()), ("at", pa.timestamp("us", "UTC"))])
        while not self._end.wait(EVERY_SECONDS):
            row = {"subject": CONSENT.subject, "at": datetime.now(UTC)}
            self._spool.append(pa.Table.from_pylist([row], schema=kinds))

    def __enter__(self) -> _Feeder:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()
