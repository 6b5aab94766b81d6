"""Keeps how rows came, second by second, so that the next run can tune its planning by it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.plan.arrival_history import DAY_SECONDS
from penstock.spark.kept_lines import KeptLines

if TYPE_CHECKING:
    from penstock.plan.arrival_history import ArrivalHistory

LINE_SECONDS = 60


class KeptArrivals:
    """`arrivals.jsonl`: a line for each minute that ran, with its end and the rows of its seconds."""

    def __init__(self, folder: Path):
        self._lines = KeptLines(folder, "arrivals")

    def restore(self, history: ArrivalHistory, now: float) -> None:
        """Puts there what is known of the day before `now`."""
        for line in self._lines.read():
            ended, rows = line.get("ended"), line.get("rows")
            if isinstance(ended, int | float) and isinstance(rows, list) and ended > now - DAY_SECONDS:
                history.restore(float(each) for each in rows if isinstance(each, int | float))

    def keep(self, history: ArrivalHistory, now: float, *, last: bool = False) -> None:
        """Writes down what is new, a minute at a time; at the `last` look also part of one."""
        if len(history.fresh) < (1 if last else LINE_SECONDS):
            return
        rows, history.fresh = [round(each, 1) for each in history.fresh], []
        self._lines.add([{"ended": now, "rows": rows}])
