"""Files: JSON lines that appear in a directory into a spool, and what a killed driver costs."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from penstock.bench.connect.drivers import Drivers
from penstock.bench.connect.feed import Feed
from penstock.bench.connect.found_rows import put_losses
from penstock.bench.connect.http import body
from penstock.bench.connect.ordeal import Ordeal
from penstock.bench.result import BenchResult, BenchSettings, at_least
from penstock.bench.stats import summary
from penstock.bench.workers import Worker
from penstock.errors import PenstockError

ROWS_PER_S = 50_000
ORDEAL_SECONDS = 0.5
"""Between two files of the ordeal: another driver takes a while to start, and must catch up."""


@dataclass(frozen=True)
class Size:
    """Files of a round, rows of each, and rounds."""

    files: int
    rows: int
    rounds: int


FULL = Size(100, 10_000, 5)
QUICK = Size(20, 10_000, 1)


def measure(settings: BenchSettings, result: BenchResult, drivers: Drivers) -> None:
    """`files_rows_per_s`, `files_lost` and `files_doubled`: exactly once by Spark's log of files."""
    size = QUICK if settings.quick else FULL
    made = tempfile.TemporaryDirectory(prefix="penstock-connect-", ignore_cleanup_errors=True)
    with made as folder:
        arrivals = Arrivals(Path(folder), size.rows)
        ordeal = Ordeal("files", str(arrivals.incoming), Path(folder), settings.say)
        [first] = drivers.take()
        ordeal.live(first)
        rates = [_rate(settings, first, arrivals, size.files) for _ in range(size.rounds + 1)]
        # The first round is the code's warming up.
        result.put("files_rows_per_s", summary(rates[1:]), at_least(ROWS_PER_S))
        feed = Feed(arrivals.appear, ORDEAL_SECONDS, arrivals.files)
        sent = ordeal.killed_once(first, drivers, lambda: feed.end() * size.rows)
        put_losses(result, "files", Path(folder), sent)
    result.setup["files"] = {
        "files": size.files,
        "rows_of_a_file": size.rows,
        "format": "JSON lines",
        "seconds": "from the first rename until all rows are in the spool",
        "blows": ordeal.blows,
    }


@dataclass
class Arrivals:
    """Files with consecutive ids, written beside the directory and then renamed into it."""

    folder: Path
    rows: int
    files: int = 0
    incoming: Path = field(init=False)

    def __post_init__(self) -> None:
        self.incoming = self.folder / "incoming"
        self.incoming.mkdir()

    def write(self, count: int) -> list[Path]:
        """So many files more, not yet to be seen."""
        written = []
        for number in range(self.files, self.files + count):
            written.append(self.folder / f"{number:06d}.json")
            written[-1].write_bytes(body(number, self.rows))
        self.files += count
        return written

    def appear(self, number: int) -> int:
        """One file more appears; the number of the next."""
        for path in self.write(1):
            os.rename(path, self.incoming / path.name)
        return number + 1


def _rate(settings: BenchSettings, driver: Worker, arrivals: Arrivals, count: int) -> float:
    """Rows by the second, from the first rename until all are in the spool."""
    written = arrivals.write(count)
    settings.say(f"{count} files of {arrivals.rows:,} rows")
    began = time.monotonic()
    for path in written:
        os.rename(path, arrivals.incoming / path.name)
    sent, came = arrivals.files * arrivals.rows, driver.ask(do="until", rows=arrivals.files * arrivals.rows)
    seconds = time.monotonic() - began
    if came != sent:
        raise PenstockError(f"{sent} rows must be in the spool, got {came}: the seconds are no measure")
    return count * arrivals.rows / seconds
