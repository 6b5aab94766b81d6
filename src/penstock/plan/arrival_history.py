"""How rows came, second by second, over the last day: what the period of planning is tuned by."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

DAY_SECONDS = 86_400
FIRST_TUNING_SECONDS = 60
LATEST_LOOK_SECONDS = 60


class ArrivalHistory:
    """Rows from outside in each second, as far as they are known; while nothing ran, no second passed."""

    def __init__(self) -> None:
        self.fresh: list[float] = []
        """Counts that whoever keeps them has not taken yet."""
        self._counts: deque[float] = deque(maxlen=DAY_SECONDS)
        self._seen: dict[str, int] = {}
        self._second: int | None = None
        self._rows = 0

    def restore(self, counts: Iterable[float]) -> None:
        """Those of an earlier run, oldest first."""
        self._counts.extend(counts)

    @property
    def counts(self) -> list[float]:
        """Rows of each second, oldest first."""
        return list(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def look(self, now: float, offered: Mapping[str, int]) -> None:
        """`offered` are all rows that ever came, by the stage that they came to."""
        self._rows += sum(max(rows - self._seen.get(name, rows), 0) for name, rows in offered.items())
        self._seen = dict(offered)
        second = int(now)
        if self._second is None:
            self._second = second
        passed = second - self._second
        if passed < 1:
            return
        # A look that comes late has the rows of all seconds since the last one; after a machine has slept,
        # nobody knows how they came.
        each = [self._rows / passed] * passed if passed <= LATEST_LOOK_SECONDS else []
        self._counts.extend(each)
        self.fresh += each
        self._second, self._rows = second, 0
