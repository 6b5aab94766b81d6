"""When rows that go through a topic came to their source: told beside it, as a record does not say."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.queues.segment import Arrivals


class Handover:
    """Between the stages at both sides of a topic, in one process; methods may be called from any thread.

    Rows are taken to be seen in the order of the turns that wrote them.

    >>> handover = Handover()
    >>> handover.written(Arrivals.at(5.0, 10), 10)
    >>> handover.written(Arrivals.at(7.0, 10), 10)
    >>> handover.seen(10).oldest, handover.seen(4).oldest, handover.seen(6).oldest
    (5.0, 7.0, 7.0)
    >>> handover.seen(1)
    Arrivals(bins=())
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writing: list[Arrivals] = []
        self._turns: deque[tuple[int, Arrivals]] = deque()  # and the rows of all up to each
        self._rows_written = self._rows_seen = 0

    @contextmanager
    def writing(self, arrivals: Arrivals) -> Iterator[None]:
        """Rows that came then are being written: some may be seen before that has ended."""
        with self._lock:
            self._writing.append(arrivals)
        try:
            yield
        finally:
            with self._lock:
                self._writing.remove(arrivals)

    def written(self, arrivals: Arrivals, rows: int) -> None:
        """So many rows that came then are in the topic."""
        with self._lock:
            self._rows_written += rows
            self._turns.append((self._rows_written, arrivals.scaled(rows)))

    def seen(self, rows: int) -> Arrivals:
        """When these rows came, which were found in the topic; without bins where that is not known."""
        with self._lock:
            before, self._rows_seen = self._rows_seen, self._rows_seen + rows
            if not self._writing:
                # More can be seen than was told, such as rows of a turn that was broken off.
                self._rows_seen = min(self._rows_seen, self._rows_written)
            until = before + rows
            told = [each for end, each in self._turns if end > before and end - each.rows < until]
            told += self._writing if until > self._rows_written else []
            while self._turns and self._turns[0][0] <= self._rows_seen:
                self._turns.popleft()
        return Arrivals().merge(told)
