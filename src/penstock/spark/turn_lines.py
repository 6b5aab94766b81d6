"""Keeps who ran when, in a few words for each turn, where `penstock report` finds it."""

from __future__ import annotations

from collections import deque

from penstock.measure.turns import KeptTurn, TurnRecord
from penstock.spark.kept_lines import KeptLines

MOST_TURNS = 10_000
"""Between two looks."""


class TurnLines:
    """Listens to turns, and writes them down when told to."""

    def __init__(self, lines: KeptLines):
        self._lines = lines
        self._turns: deque[TurnRecord] = deque(maxlen=MOST_TURNS)

    def __call__(self, record: TurnRecord) -> None:
        self._turns.append(record)

    def keep(self) -> None:
        """Writes what came since it last did."""
        fresh = [self._turns.popleft() for _ in range(len(self._turns))]
        if fresh:
            self._lines.add(KeptTurn.of(each).to_json() for each in fresh)
