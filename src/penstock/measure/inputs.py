"""The total sojourn time of inputs: an input is done when everything that was derived from it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil, floor, inf

from penstock.errors import PenstockError

LATEST = 3
"""The last one in so many parts of the time between looks tells what comes now."""
MOST_OPEN = 10_000
PATIENCE = 10.0
"""Times as long as inputs took on average, one may take."""


@dataclass(frozen=True, slots=True)
class InputFigures:
    """Of the time since the last look."""

    inputs_per_second: float
    """lambda_0: inputs that came, followed or not."""
    inputs_done: int
    """That were followed."""
    mean_seconds: float
    """E[T^] of them; 0.0 where none was done."""
    inputs_open: int
    """That are followed and not yet done."""
    seconds: float = 0.0
    """Since the last look."""
    latest_per_second: float = 0.0
    """As `inputs_per_second`, but of the last third of that time, in whole seconds."""

    def counted(self, inputs: int) -> InputFigures:
        """With rates of so many inputs, where not all that are followed count."""
        rate = inputs / self.seconds if self.seconds > 0.0 else 0.0
        share = rate / self.inputs_per_second if self.inputs_per_second > 0.0 else 0.0
        latest = share * self.latest_per_second
        return replace(self, inputs_per_second=rate, latest_per_second=latest)

    @property
    def behind_seconds(self) -> float:
        """What an input that comes now is in for, by Little's law: what is open, as fast as it gets done.

        >>> InputFigures(9.0, inputs_done=30, mean_seconds=2.0, inputs_open=60, seconds=10.0).behind_seconds
        20.0
        """
        if not self.inputs_open:
            return 0.0
        return self.seconds * self.inputs_open / self.inputs_done if self.inputs_done else inf


@dataclass(slots=True)
class _Open:
    came_at: float
    rows: int


class InputMeter:
    """Follows every `every_inputs`-th input through the graph, by counting the rows of it that are left.

    Splits, joins and loops need no care: a turn takes rows of an input away and adds those it made of them,
    once for each stage that reads them. At most `most_open` are followed at a time, and none for longer than
    `patience_seconds` and ten times what inputs took of late: of one whose rows were lost, or meet
    rows of others again and again, no end is seen. Not safe for threads.

    >>> meter = InputMeter(0.0)
    >>> meter.came("frame", 1.0)
    >>> meter.taken("frame", rows=1, made=3, at=1.5)
    >>> meter.taken("frame", rows=3, made=0, at=2.25)
    >>> meter.look(10.0)  # doctest: +NORMALIZE_WHITESPACE
    InputFigures(inputs_per_second=0.1, inputs_done=1, mean_seconds=1.25, inputs_open=0, seconds=10.0,
        latest_per_second=0.0)
    """

    def __init__(
        self,
        now: float,
        every_inputs: int = 1,
        most_open: int = MOST_OPEN,
        patience_seconds: float = inf,
    ) -> None:
        if every_inputs < 1 or most_open < 1:
            raise PenstockError(
                "a meter of inputs must follow every 1 or more inputs and at least 1 at a time, got "
                f"{every_inputs} and {most_open}: nothing would be measured"
            )
        self._every, self._most_open, self._patience = every_inputs, most_open, patience_seconds
        self._mean = 0.0
        self._open: dict[str, _Open] = {}
        self._number = 0
        self._looked_at = now
        self._came = self._done = 0
        self._came_in: Counter[int] = Counter()
        """By the second."""
        self._seconds = 0.0

    def came(self, name: str, at: float, rows: int = 1) -> None:
        """An input of so many rows came from outside; one that leads to no row at all is done at once."""
        self._came += 1
        self._came_in[floor(at)] += 1
        self._number += 1
        if self._number % self._every or len(self._open) >= self._most_open:
            return
        self._open[name] = _Open(at, rows)
        self._close_if_done(name, at)

    def taken(self, name: str, rows: int, made: int, at: float) -> None:
        """A turn that ended took so many rows of the input and made others; nothing if it is not followed."""
        followed = self._open.get(name)
        if followed is None:
            return
        followed.rows += made - rows
        self._close_if_done(name, at)

    def follows(self, name: str) -> bool:
        """Whether the input is followed and not yet done."""
        return name in self._open

    def look(self, now: float) -> InputFigures:
        """The figures since the last look; what is open stays so, but for what is given up."""
        seconds = now - self._looked_at
        figures = InputFigures(
            inputs_per_second=self._came / seconds if seconds > 0.0 else 0.0,
            inputs_done=self._done,
            mean_seconds=self._seconds / self._done if self._done else 0.0,
            inputs_open=len(self._open),
            seconds=seconds,
            latest_per_second=self._latest(now, seconds),
        )
        self._looked_at, self._came, self._done, self._seconds = now, 0, 0, 0.0
        self._came_in.clear()
        self._mean = figures.mean_seconds or self._mean
        self._give_up(now)
        return figures

    def _latest(self, now: float, seconds: float) -> float:
        begin = ceil(now - seconds / LATEST)
        if now - begin < 1.0:
            return self._came / seconds if seconds > 0.0 else 0.0
        return sum(count for second, count in self._came_in.items() if second >= begin) / (now - begin)

    def _give_up(self, now: float) -> None:
        least = now - max(self._patience, PATIENCE * self._mean)
        self._open = {name: each for name, each in self._open.items() if each.came_at >= least}

    def _close_if_done(self, name: str, at: float) -> None:
        followed = self._open[name]
        if followed.rows <= 0:
            del self._open[name]
            self._done += 1
            self._seconds += max(at - followed.came_at, 0.0)
