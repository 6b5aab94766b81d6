"""Dealt turns: bulk service of rows that cannot be divided, dealt to the k tasks of a turn one by one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, sqrt

from penstock.model.dealt_cost import NORMAL, DealtCost, greatest_normal
from penstock.model.stage_model import check_number

ROUNDS = 200
CLOSE = 1e-6
DAMPING = 0.5
UNEVEN = 0.1
"""Of the time between segments, by what it varies at least."""
QUANTILES = (-1.593, -0.967, -0.589, -0.282, 0.0, 0.282, 0.589, 0.967, 1.593)
"""Of a normal distribution, at 1/18, 3/18 and so on."""


@dataclass(frozen=True)
class DealtTurns:
    """As `BulkService`, where a row takes one task for its whole time: more slots than rows spare nothing,
    and a turn lasts as long as its slowest task.

    n rows on k tasks take L(n) = c0 + c1 max, the longest of min(n, k) sums. With turns of t seconds on
    average, t = L(lambda t + e), the share i of idle time as there: E[T](k) = i L(1) + (1 - i) (t'/2 +
    L(1 + lambda t')), where t' = t + Var(t)/t is the turn that a row finds. Rows that come in segments
    every g seconds stay L(lambda g) where that is less than g: their turn is the next, without a wait.

    >>> frames = DealtTurns(rows_per_second=6.0, fixed_seconds=0.1, row_seconds=0.5)
    >>> [round(frames.sojourn_seconds(k), 2) for k in (3, 4, 8)]
    [inf, 2.03, 0.9]
    """

    rows_per_second: float
    """lambda."""
    fixed_seconds: float
    """c0."""
    row_seconds: float
    """c1: slot seconds for a row."""
    service_scv: float = 0.0
    """s: of the slot seconds of rows."""
    arrival_scv: float = 1.0
    """a."""
    segment_seconds: float = 0.0
    """g: between segments, where rows come in such, as from the turns of another stage; 0 where singly."""

    turn_scv: float = 0.0
    """Of turns alike, where that is measured rather than the spread of rows."""

    def __post_init__(self) -> None:
        check_number("an arrival rate", self.rows_per_second, 0.0, "no queue could be told")
        check_number("the fixed cost of a turn", self.fixed_seconds, 0.0, "no turn ends before it begins")
        check_number("the cost of a row", self.row_seconds, 0.0, "no turn ends before it begins")
        spreads = {"arrivals": self.arrival_scv, "service times": self.service_scv, "turns": self.turn_scv}
        for what, value in spreads.items():
            check_number(f"the squared coefficient of variation of {what}", value, 0.0, "no spread is less")
        check_number("the time between segments", self.segment_seconds, 0.0, "none comes before the last")

    @property
    def stepped(self) -> bool:
        """Rows are whole: one more slot may leave the longest task as it is."""
        return True

    @property
    def busy_slots(self) -> float:
        return self.rows_per_second * self.row_seconds

    @property
    def floor_seconds(self) -> float:
        return self.sojourn_seconds(MOST)

    def turn_seconds(self, rows: int, slots: int) -> float:
        """L(n)."""
        return self._cost.turn_seconds(max(rows, 1), slots)

    @cached_property
    def _cost(self) -> DealtCost:
        return DealtCost(self.fixed_seconds, self.row_seconds, self.service_scv)

    def _around(self, rows: float, slots: int) -> float:
        """L over the numbers of rows that vary around a mean as arrivals do."""
        spread = sqrt(self.arrival_scv * rows)
        return sum(self.turn_seconds(round(rows + each * spread), slots) for each in QUANTILES) / len(
            QUANTILES
        )

    def sojourn_seconds(self, slots: int) -> float:
        if not slots > self.busy_slots:
            return inf
        if self.rows_per_second == 0.0:
            return self.turn_seconds(1, slots)
        turn, idle = self._turn(slots)
        variance = self._variance(turn, slots)
        found = turn + variance / turn
        own = self._around(1.0 + self.rows_per_second * found, slots)
        singly = idle * self.turn_seconds(1, slots) + (1.0 - idle) * (0.5 * found + own)
        return self._in_segments(singly, variance, slots) if self.segment_seconds > 0.0 else singly

    def _in_segments(self, singly: float, variance: float, slots: int) -> float:
        """A segment that comes when the last one is done waits for nothing; else it waits as rows do."""
        gap = self.segment_seconds
        own = self._around(max(self.rows_per_second * gap, 1.0), slots)
        # The gap is the length of turns elsewhere, and varies about as those here do.
        spread = sqrt(2.0 * variance) + UNEVEN * gap
        done = NORMAL.cdf((gap - own) / spread)
        return done * own + (1.0 - done) * singly

    def _turn(self, slots: int) -> tuple[float, float]:
        """t, and the share of idle time."""
        rate, turn, empty = self.rows_per_second, self.fixed_seconds + self.row_seconds, 1.0
        for _ in range(ROUNDS):
            empty = exp(-rate * turn)
            step = self._around(rate * turn + empty, slots) - turn
            turn += DAMPING * step
            if abs(step) <= CLOSE * turn:
                break
        return turn, empty / (empty + rate * turn)

    def _variance(self, turn: float, slots: int) -> float:
        """Of the length of a turn: by the number of its rows, and by what its slowest task takes."""
        rows, share = max(self.rows_per_second * turn, 1.0), self.row_seconds / slots
        each = max(rows / slots, 1.0)
        _, least = greatest_normal(min(max(round(rows), 1), slots))
        of_rows = self.arrival_scv * rows * share * share if rows > slots else 0.0
        of_tasks = each * self.service_scv * least * self.row_seconds**2
        rho = self.busy_slots / slots
        return (of_rows + of_tasks + self.turn_scv * turn * turn) / (1.0 - rho * rho)


MOST = 10_000
