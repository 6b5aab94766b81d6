"""Bulk service: a stage with slots of its own whose turn takes all that waits, at a cost c0 + c1 n / k."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

from penstock.model.stage_model import check_number

NO_LESS = "no spread is less"
ROUNDS = 100
CLOSE = 1e-13


@dataclass(frozen=True)
class BulkService:
    """A row waits for the rest of a turn and goes through the next one, unless it finds the stage idle.

    With b = c1/k, rho = lambda b, turns of t seconds on average and the share i of time in which the stage
    is idle: E[T](k) = c0 + b + (1 - i) (1/2 + rho) (t + a lambda b^2 / (1 - rho^2)). Many rows a turn: 1.5 t
    with t = c0/(1 - rho); few: the terms in b count; hardly any: c0 + b. Derived in docs/slots.md.
    Fed in segments every g >= c0/(1 - rho) seconds, it is c0 + rho g, as no turn is waited for.

    >>> stage = BulkService(rows_per_second=1000.0, fixed_seconds=0.1, row_seconds=0.0015)
    >>> [round(stage.sojourn_seconds(k), 3) for k in (1, 2, 3, 100)]
    [inf, 0.602, 0.301, 0.152]
    """

    rows_per_second: float
    """lambda."""
    fixed_seconds: float
    """c0: what a turn takes whatever its rows and slots."""
    row_seconds: float
    """c1: slot seconds for a row."""
    arrival_scv: float = 1.0
    """a."""
    segment_seconds: float = 0.0
    """g: between segments, where rows come in such; 0 where they come singly."""

    def __post_init__(self) -> None:
        check_number("an arrival rate", self.rows_per_second, 0.0, "no queue could be told")
        check_number("the fixed cost of a turn", self.fixed_seconds, 0.0, "no turn ends before it begins")
        check_number("the cost of a row", self.row_seconds, 0.0, "no turn ends before it begins")
        check_number("the squared coefficient of variation of arrivals", self.arrival_scv, 0.0, NO_LESS)
        check_number("the time between segments", self.segment_seconds, 0.0, "none comes before the last")

    @property
    def stepped(self) -> bool:
        """Fed in segments, it falls by a step where these find no turn to wait for any more."""
        return self.segment_seconds > 0.0

    @property
    def busy_slots(self) -> float:
        """lambda c1: fixed costs are shared by ever more rows as a stage fills, and do not count."""
        return self.rows_per_second * self.row_seconds

    @property
    def floor_seconds(self) -> float:
        return self._seconds(0.0)

    def sojourn_seconds(self, slots: int) -> float:
        return self._seconds(self.row_seconds / slots) if self._keeps_up(slots) else inf

    def waiting_sojourn_seconds(self, wait_seconds: float) -> float:
        """E[T](1) if each turn has to wait that long for its slot; rows that come meanwhile go with it."""
        b, rho = self.row_seconds, self.busy_slots
        turn, idle = self.turn(1, wait_seconds)
        round_seconds = turn + wait_seconds + self.arrival_scv * rho * b / (1.0 - rho * rho)
        at_idle, else_ = (1.0 + rho) * wait_seconds, (0.5 + rho) * round_seconds
        return self.fixed_seconds + b + idle * at_idle + (1.0 - idle) * else_

    def turn(self, slots: int, wait_seconds: float = 0.0) -> tuple[float, float]:
        """t, the mean length of a turn, and the share of time in which the stage has nothing to do."""
        return self._turn(self.row_seconds / slots, wait_seconds) if self._keeps_up(slots) else (inf, 0.0)

    def _keeps_up(self, slots: int) -> bool:
        """By rho as it is rounded, too: 1 - rho is divided by."""
        return slots > self.busy_slots and self.rows_per_second * (self.row_seconds / slots) < 1.0

    def _seconds(self, b: float) -> float:
        rho = self.rows_per_second * b
        if self.segment_seconds * (1.0 - rho) >= self.fixed_seconds and self.segment_seconds > 0.0:
            return self.fixed_seconds + rho * self.segment_seconds
        turn, idle = self._turn(b, 0.0)
        # The turn that a row finds is longer than the mean one, by Var(t)/t.
        found = turn + self.arrival_scv * rho * b / (1.0 - rho * rho)
        return self.fixed_seconds + b + (1.0 - idle) * (0.5 + rho) * found

    def _turn(self, b: float, wait: float) -> tuple[float, float]:
        """With the chance e = exp(-lambda t) that nobody comes during a turn, the stage is idle for e/lambda
        a turn, so that n = lambda (t + wait) + e rows make up a turn and t = c0 + b n. Newton's steps from
        e = 0 go up to the solution and never over it, as t (1 - rho) - b e is increasing and concave in t.
        """
        rate, rho = self.rows_per_second, self.rows_per_second * b
        if rate == 0.0:
            return self.fixed_seconds + b, 1.0
        fixed = self.fixed_seconds + rho * wait
        turn, empty = fixed / (1.0 - rho), 1.0
        for _ in range(ROUNDS):
            empty = exp(-rate * turn)
            step = (fixed + b * empty - (1.0 - rho) * turn) / (1.0 - rho + rho * empty)
            turn += step
            if step <= CLOSE * turn:
                break
        return turn, empty / (empty + rate * (turn + wait))
