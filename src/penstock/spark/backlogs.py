"""What waits in a source that Spark reads itself, as far as it can be known."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlparse

from penstock.measure.rate_clock import RateClock
from penstock.queues.segment import Arrivals
from penstock.scheduling.contexts import Frontier, transform
from penstock.scheduling.line import WindowSpan
from penstock.spark.query import AfterBatch, HeldQuery
from penstock.spark.turn_input import Portion, TurnInput

FILE_POLL_SECONDS = 0.1
# Spark's clock has milliseconds: a second that ends now is read in full a moment later.
CLOCK_GRAIN_SECONDS = 0.002


@dataclass(frozen=True)
class Waiting:
    """What waits: rows (an estimate where `exact` figures do not exist), since when; 0 rows: nothing."""

    rows: int
    since: float


class Backlog(Protocol):
    """A source's backlog. `listens`: it cannot be known, so the query is never held."""

    listens: bool

    def waiting(self, now: float) -> Waiting: ...

    def look_again_at(self, now: float) -> float | None:
        """When something may have come, None if only a batch can tell."""
        ...

    def look(self) -> None:
        """Finds out what has come, where that takes more than a clock."""
        ...

    def before(self, query: HeldQuery, now: float) -> float | None:
        """The greatest event time that a batch cut now will read, None if unknown."""
        ...

    def after(self, query: HeldQuery, batch: AfterBatch, now: float) -> TurnInput:
        """What the batch read."""
        ...

    def nothing_came(self) -> None:
        """Spark found no rows where some were thought to wait."""
        ...

    def frontier(self, span: WindowSpan, now: float) -> Frontier | None:
        """The window that a batch completes next, None where that cannot be known."""
        ...


class RateBacklog:
    """Spark's rate source: rows come at whole seconds after its start, so everything about it is known."""

    listens = False

    def __init__(self, rows_per_second: int):
        self._rate = rows_per_second
        self._clock: RateClock | None = None
        self._seconds_done = 0

    def waiting(self, now: float) -> Waiting:
        if self._clock is None:
            return Waiting(0, now)
        seconds = self._clock.due_seconds(now - CLOCK_GRAIN_SECONDS) - self._seconds_done
        return Waiting(max(seconds, 0) * self._rate, self._comes_at(self._clock, self._seconds_done + 1))

    def look_again_at(self, now: float) -> float | None:
        if self._clock is None:
            return None
        due = max(self._clock.due_seconds(now), self._seconds_done)
        return self._comes_at(self._clock, due + 1) + 2 * CLOCK_GRAIN_SECONDS

    def before(self, query: HeldQuery, now: float) -> float | None:
        if self._clock is None:
            return None
        # To the millisecond: one less would leave Spark a watermark to catch up with, by a turn without rows.
        return self._clock.last_event_ms(self._clock.due_seconds(now - CLOCK_GRAIN_SECONDS)) / 1000

    def after(self, query: HeldQuery, batch: AfterBatch, now: float) -> TurnInput:
        clock = self._clock or RateClock(round(query.rate_start() * 1000), self._rate)
        done = query.rate_seconds()
        first = done - round(batch.rows_read / self._rate) + 1
        self._clock, self._seconds_done = clock, done
        return TurnInput(tuple(self._second(clock, number) for number in range(first, done + 1)))

    def look(self) -> None:
        """Nothing to do: the clock tells."""

    def nothing_came(self) -> None:
        """Nothing to correct: the clock goes on."""

    def frontier(self, span: WindowSpan, now: float) -> Frontier | None:
        if self._clock is None:
            return None
        done = self._clock.last_event_ms(self._seconds_done) / 1000
        closed = done - span.delay_seconds
        needed = transform(closed, span.slide_seconds, offset=span.offset_seconds) + span.delay_seconds
        time = self._clock.completed_at(needed)
        return Frontier(needed, time, complete=time <= now - CLOCK_GRAIN_SECONDS)

    def _second(self, clock: RateClock, number: int) -> Portion:
        came = self._comes_at(clock, number)
        ranges = {"timestamp": (came - 1, clock.last_event_ms(number) / 1000)}
        return Portion(self._rate, Arrivals.at(came, self._rate), came, ranges)

    def _comes_at(self, clock: RateClock, second: int) -> float:
        return clock.created_ms / 1000 + second


class FilesBacklog:
    """Files in a directory: one that the query's own log does not name is new. Its rows are a guess."""

    listens = False

    def __init__(self, folder: Path, log: Path):
        """`log` is the source's folder in the query's checkpoint, which may not be there yet."""
        self._folder = folder
        self._log = log
        self._last_entry = -1
        self._rows_per_file = 1.0
        self._read = set(self._newly_read())
        self._fresh: list[float] = []

    def waiting(self, now: float) -> Waiting:
        return Waiting(round(len(self._fresh) * self._rows_per_file), min(self._fresh, default=now))

    def look(self) -> None:
        """Lists the folder, which may take a while: not to be done while others wait for a decision."""
        listed = self._list()
        self._read &= listed.keys()  # a file that is gone cannot wait, and Spark's log remembers it
        self._fresh = [time for path, time in listed.items() if path not in self._read]

    def look_again_at(self, now: float) -> float | None:
        return now + FILE_POLL_SECONDS

    def before(self, query: HeldQuery, now: float) -> float | None:
        return None

    def after(self, query: HeldQuery, batch: AfterBatch, now: float) -> TurnInput:
        came = self._newly_read()
        self._read.update(came)
        self._fresh = []
        if not came or not batch.rows_read:
            return TurnInput()
        self._rows_per_file = max(batch.rows_read / len(came), 1.0)
        share, left = divmod(batch.rows_read, len(came))
        rows = [share + (place < left) for place in range(len(came))]
        pairs = zip(sorted(came.values()), rows, strict=True)
        return TurnInput(tuple(Portion(count, Arrivals.at(at, count), at) for at, count in pairs if count))

    def frontier(self, span: WindowSpan, now: float) -> Frontier | None:
        """What is in the files is not known."""
        return None

    def nothing_came(self) -> None:
        """Names that Spark passes over, such as empty or unreadable ones, are not asked for again."""
        self._read.update(self._list())
        self._fresh = []

    def _list(self) -> dict[str, float]:
        found = {}
        for root, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith((".", "_"))]
            for path in (os.path.join(root, name) for name in names if not name.startswith((".", "_"))):
                with contextlib.suppress(OSError):  # renamed or removed meanwhile, or not to be read now
                    found[path] = os.stat(path).st_mtime
        return found

    def _newly_read(self) -> dict[str, float]:
        """Names and times of the files in the log's entries since the last look."""
        found: dict[str, float] = {}
        last = self._last_entry
        for path in self._log.glob("[0-9]*"):
            number = int(path.name.split(".")[0])
            if number <= self._last_entry:
                continue
            last = max(last, number)
            for line in path.read_text().splitlines()[1:]:
                entry = json.loads(line)
                if entry["batchId"] > self._last_entry:
                    found[unquote(urlparse(entry["path"]).path)] = entry["timestamp"] / 1000
        self._last_entry = last
        return found


class UnknownBacklog:
    """Any other source: the query asks for its slot when a batch has come."""

    listens = True

    def __init__(self, now: float) -> None:
        self._last_cut = now

    def waiting(self, now: float) -> Waiting:
        return Waiting(0, now)

    def look_again_at(self, now: float) -> float | None:
        return None

    def before(self, query: HeldQuery, now: float) -> float | None:
        return None

    def after(self, query: HeldQuery, batch: AfterBatch, now: float) -> TurnInput:
        """Rows may have come at any time since the batch before, so that is when they count from."""
        came, self._last_cut = self._last_cut, now
        return TurnInput((Portion(batch.rows_read, Arrivals.at(came, batch.rows_read), came),))

    def nothing_came(self) -> None:
        """Nothing was thought to wait."""

    def frontier(self, span: WindowSpan, now: float) -> Frontier | None:
        """Nothing is known before a batch."""
        return None

    def look(self) -> None:
        """Nothing to do: only a batch can tell."""
