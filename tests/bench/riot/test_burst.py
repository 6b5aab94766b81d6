"""What a burst shows: memory that grew, and rows that are missing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from penstock.bench.result import BenchResult
from penstock.bench.riot.bench import put_burst
from penstock.bench.riot.burst import Burst
from penstock.bench.riot.memory import memory_mb
from penstock.bench.riot.worker import spool_bytes
from penstock.queues.spool import Spool

FLAT = Burst(
    rate=2000,
    seconds=300,
    base_mb=(1500.0, 1510.0, 1520.0),
    memory_mb=tuple((at * 15.0, 1500.0 + at % 2 * 20) for at in range(20)),
    peak_mb=1700.0,
    spool_mb=90.0,
    most_waiting=300_000,
    fed=600_000,
    out=600_000,
    expected=600_000,
    received=600_000,
    stored=(600_000, 600_000),
    drain_seconds=250,
)


def test_memory_that_goes_up_and_down_has_not_grown() -> None:
    assert FLAT.growth_mb == 10.0


def test_memory_has_grown_from_what_it_was_at_the_rate_held_also_where_it_grew_at_once() -> None:
    at_once = tuple((at * 15.0, 1710.0) for at in range(20))
    assert replace(FLAT, memory_mb=at_once).growth_mb == 200.0
    one_peak = (*at_once[:-1], (300.0, 9000.0))
    assert replace(FLAT, memory_mb=one_peak).growth_mb == 200.0


def test_a_row_is_lost_where_it_was_not_published_or_not_received() -> None:
    assert FLAT.lost == 0
    assert replace(FLAT, out=599_990).lost == 10
    assert replace(FLAT, out=600_003).doubled == 3
    assert replace(FLAT, received=599_999).lost == 1
    assert replace(FLAT, stored=(599_998, 599_998)).lost == 2
    # As many rows, but two of them are one reading.
    twice = replace(FLAT, stored=(600_000, 599_999))
    assert (twice.lost, twice.doubled) == (1, 1)
    # At least once: more than is due is no loss.
    assert replace(FLAT, received=600_500).lost == 0


def test_a_burst_in_which_hardly_any_row_waited_misses_its_mark() -> None:
    result = BenchResult("riot")
    put_burst(result, FLAT)
    assert result.missed == []
    put_burst(result, replace(FLAT, most_waiting=15_000))
    assert result.missed == ["burst_waiting_rows"]


def test_the_size_of_a_spool_is_that_of_its_rows(tmp_path: Path) -> None:
    with Spool(tmp_path / "ours/state/etl/queues/parse") as spool:
        spool.append(pa.table({"value": list(range(1000))}))
        assert spool_bytes(tmp_path) == spool.bytes > 1000


def test_a_process_that_has_ended_has_no_memory() -> None:
    with subprocess.Popen(["sleep", "60"]) as gone:
        process = psutil.Process(gone.pid)
        assert memory_mb(process) > 0.0
        gone.kill()
    assert memory_mb(process) == 0.0
    assert memory_mb(process, psutil.Process()) > 1.0


def test_a_process_that_is_still_a_copy_of_who_started_it_is_not_counted_twice() -> None:
    program = "import os, sys; os.fork(); sys.stdout.write('+'); sys.stdout.flush(); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe) as started:
        assert started.stdout is not None
        assert started.stdout.read(2) == b"++"
        process = psutil.Process(started.pid)
        (copy,) = process.children()
        assert memory_mb(copy) == 0.0
        assert memory_mb(process, copy) == pytest.approx(memory_mb(process), rel=0.1)
