from __future__ import annotations

import errno
import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import eventually
from tests.spark.streams import spool_rows

from penstock import Spool
from penstock.pipeline.sources import Replay
from penstock.queues.disk import Disk
from penstock.spark.feeders import Feeder, load_trace

TRACE = pa.table({"letter": list("abcdefg")})


def played(folder: Path, spec: Replay, rows: int) -> list[dict[str, Any]]:
    """What lies in the spool once a feeder has played until at least so many rows are there."""
    with Spool(folder) as spool:
        feeder = Feeder(spec, spool, time.time)
        feeder.start()
        try:
            eventually(lambda: feeder.done or spool.rows >= rows)
        finally:
            feeder.stop()
        return spool_rows(spool)


def test_rows_are_numbered_on_over_loops_restarts_and_another_rate(tmp_path: Path) -> None:
    found: list[dict[str, Any]] = []
    for rate in (500, 500, 733):
        spec = Replay(TRACE, rate, number="msgid", tick_seconds=0.01)
        found = played(tmp_path / "q", spec, len(found) + 30)
    assert len(found) >= 90
    assert [row["msgid"] for row in found] == list(range(len(found)))
    assert [row["letter"] for row in found] == ["abcdefg"[n % 7] for n in range(len(found))]


def test_a_trace_that_ends_is_numbered_to_its_last_row(tmp_path: Path) -> None:
    spec = Replay(TRACE, 300, loop=False, stamp="at", number="msgid", tick_seconds=0.01)
    found = played(tmp_path / "q", spec, 7)
    assert [(row["msgid"], row["letter"]) for row in found] == list(enumerate("abcdefg"))
    assert all(row["at"] is not None for row in found)


def test_a_column_of_that_name_in_the_trace_is_replaced_where_it_stands(tmp_path: Path) -> None:
    trace = pa.table({"msgid": list("abc"), "at": [1, 2, 3], "v": [7, 8, 9]})
    spec = Replay(trace, 300, loop=False, stamp="at", number="msgid", tick_seconds=0.01)
    assert load_trace(spec).schema == pa.schema(
        [("msgid", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("v", pa.int64())]
    )
    found = played(tmp_path / "q", spec, 3)
    assert [(row["msgid"], row["v"]) for row in found] == [(0, 7), (1, 8), (2, 9)]


def test_stamp_and_number_in_one_column_are_refused() -> None:
    text = "stamp and number must be two columns, got 'n' twice: one would go"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Replay(TRACE, 1, stamp="n", number="n")


def test_a_replay_goes_on_after_a_write_that_failed(tmp_path: Path) -> None:
    failures = [OSError(errno.EIO, "I/O error")]

    class Flaky(Disk):
        def write(self, path: Path, content: Any) -> None:
            if failures:
                raise failures.pop()
            super().write(path, content)

    with Spool(tmp_path / "q", disk=Flaky()) as spool:
        feeder = Feeder(Replay(TRACE, 300, loop=False, tick_seconds=0.01), spool, time.time)
        feeder.start()
        try:
            eventually(lambda: feeder.done)
        finally:
            feeder.stop()
        assert not failures
        assert "".join(row["letter"] for row in spool_rows(spool)) == "abcdefg"
