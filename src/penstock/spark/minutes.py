"""Keeps the figures of every stage, minute by minute, where `penstock explain` finds them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable

from penstock.measure.minutes import StageMinute, minute_of
from penstock.spark.bookkeeping import Books
from penstock.spark.kept_lines import KeptLines


class Minutes:
    """Looks at the books of all stages now and then, and writes them down when a minute has ended.

    A stage that has gone is kept until then, so that its last minute is told. May be called from any thread.
    """

    def __init__(self, lines: KeptLines, slots: Callable[[], int], now: float):
        self._lines = lines
        self._slots = slots
        self._begin = minute_of(now)
        self._books: dict[int, Books] = {}
        self._lock = threading.Lock()

    def look(
        self, now: float, books: Iterable[Books], *, first: Collection[str] = (), last: bool = False
    ) -> None:
        """`books` are those of all stages that run, `first` names the first operations of their pipelines; at
        the `last` look the minute need not have ended."""
        with self._lock:
            current = {id(each): each for each in books}
            self._books.update(current)
            if minute_of(now) > self._begin or last:
                begin, self._begin = self._begin, minute_of(now)
                ended, self._books = self._books, current
                self._write(begin, now, ended.values(), first)

    def _write(self, begin: float, now: float, books: Iterable[Books], first: Collection[str]) -> None:
        slots = self._slots()
        minutes = [
            StageMinute(
                begin, each.stage, slots, each.figures_since_last(now), each.pipeline, each.stage in first
            )
            for each in books
        ]
        self._lines.add(each.to_json() for each in minutes if each.figures.seconds > 0.0)
