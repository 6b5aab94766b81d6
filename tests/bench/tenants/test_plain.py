"""What the rivals' side reads from Spark's logs, and the pools it gives to Spark."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.bench.tenants.load import FairSettings
from penstock.bench.tenants.meter import RowMeter
from penstock.bench.tenants.plain import FileLog, PlainJob, files_per_second, pool_of, pools
from penstock.workloads.tenants.groups import bulk_jobs, urgent_jobs


def entry(number: int, name: str) -> str:
    return json.dumps({"path": f"file:///input/{name}", "timestamp": 1, "batchId": number})


def checkpoint(folder: Path, offsets: dict[int, int], entries: dict[str, list[str]]) -> Path:
    for name in ("offsets", "sources/0"):
        (folder / name).mkdir(parents=True)
    for batch, last in offsets.items():
        (folder / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"logOffset":{last}}}')
    for name, lines in entries.items():
        (folder / "sources" / "0" / name).write_text("\n".join(["v1", *lines]))
    return folder


def test_each_file_is_told_once_also_from_a_compacted_log(tmp_path: Path) -> None:
    compact = [entry(0, "1.parquet"), entry(1, "2.parquet"), entry(2, "3.parquet"), entry(2, "4.parquet")]
    log = FileLog(
        checkpoint(
            tmp_path,
            {0: 0, 1: 0, 2: 2},
            {"0": [entry(0, "1.parquet")], "1": [entry(1, "2.parquet")], "2.compact": compact},
        )
    )
    assert log.read_by(0) == ["1.parquet"]
    assert log.read_by(0) == ["1.parquet"], "it runs still"
    log.passed(0)
    # A batch without new files, which only flushes windows.
    assert log.read_by(1) == []
    assert log.read_by(2) == ["2.parquet", "3.parquet", "4.parquet"]


def test_urgent_queries_have_a_pool_of_each_weight_and_a_share_of_their_own() -> None:
    lines = pools().splitlines()
    urgent, bulk = urgent_jobs(4)[-1], bulk_jobs(1000, 16)[-1]
    for job, fair, settings in (
        (urgent, FairSettings(10), "<weight>10</weight><minShare>1</minShare>"),
        (urgent, FairSettings(100), "<weight>100</weight><minShare>1</minShare>"),
        (bulk, FairSettings(100), "<weight>1</weight><minShare>0</minShare>"),
    ):
        name = pool_of(job, fair)
        pool = f'  <pool name="{name}"><schedulingMode>FIFO</schedulingMode>{settings}</pool>'
        assert lines.count(pool) == 1


def test_a_cap_is_a_number_of_files_by_how_many_come() -> None:
    bulk = bulk_jobs(4000, 1)[0]
    assert files_per_second(bulk) == 4.0
    assert files_per_second(replace(bulk, message_seconds=0.05)) == 10.0, "one a tick at most"


class Slow:
    """A batch's rows, which are there when they are let go."""

    def __init__(self) -> None:
        self.asked, self.free = threading.Event(), threading.Event()

    def toArrow(self) -> pa.Table:
        self.asked.set()
        assert self.free.wait(10)
        return pa.table({})


def test_rows_of_a_batch_that_runs_at_the_end_are_waited_for(tmp_path: Path) -> None:
    session: Any = None  # it is only asked when the query starts
    job = PlainJob(session, bulk_jobs(1000)[0], tmp_path, RowMeter())
    job.put([(0, pa.table({"ad": range(7)}))])
    checkpoint(tmp_path / "checkpoint", {0: 0}, {"0": [entry(0, "000000001.parquet")]})
    frame: Any = Slow()
    batch = threading.Thread(target=job._on_batch, args=(frame, 0))
    batch.start()
    assert frame.asked.wait(10)
    job.end_batch(time.time(), 0.0)
    assert job.done == []
    assert [(ended, rows) for _, ended, rows in job.counted(12.5)] == [(12.5, 7)], "as though it ended then"
    job.end_batch(time.time() - 60, 10.0)
    assert job.done == [], "it had not begun then"
    threading.Timer(0.1, frame.free.set).start()
    job.end_batch(time.time(), 10.0)
    assert [rows for _, _, rows in job.done] == [7]
    assert job.counted(12.5) == job.done
    batch.join()
