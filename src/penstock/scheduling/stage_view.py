"""What the scheduler and its policies see of a stage."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from penstock.errors import PenstockError
from penstock.scheduling.contexts import PriorityContext


class StageViewError(PenstockError):
    """Figures that no stage can have."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


@dataclass(frozen=True, slots=True)
class StageView:
    """A stage at one moment; times are epoch seconds.

    `ready_since` is when it began to wait with something to do, `oldest_arrival` when the oldest
    waiting row arrived at its source, `slots` how many it needs (k). `latency_seconds` is the least
    target below it, None where there is none. `flush` says that a turn without rows is wanted too, and
    `starts` that all it would do is to start the stage, so that its first rows need not wait for that.

    `depth` is the number of stages its rows still have before them. Learned while it runs are
    `seconds_per_row` (of turn, for a row taken; 0 while not known), `selectivity` (rows out per row in) and
    `steepness`, the slope of its progress chart (`measure.chain`; None while not known).

    `context` is that of its next message, `rows_next` the rows that belong to the next turn, None for all.
    A turn of n rows on its slots takes `fixed_seconds` + `row_seconds` * n, and must start by
    `start_deadline` to be in time. `rows_seen` is the largest turn it had of late, 0 before the first; costs
    learned from a few turns are not `trusted`.

    `planned_rows` are those of a batch, None without a plan, and no turn takes more if they are `exact`; with
    less than `block_rows` it makes nothing.
    """

    name: str
    pipeline: str
    rows_waiting: int
    ready_since: float
    oldest_arrival: float
    slots: int = 1
    latency_seconds: float | None = None
    flush: bool = False
    starts: bool = False
    depth: int = 0
    seconds_per_row: float = 0.0
    selectivity: float = 1.0
    steepness: float | None = None
    context: PriorityContext | None = None
    rows_next: int | None = None
    fixed_seconds: float = 0.0
    row_seconds: float = 0.0
    start_deadline: float = inf
    rows_seen: int = 0
    trusted: bool = True
    planned_rows: int | None = None
    exact: bool = False
    block_rows: int = 0

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise StageViewError(
                self.name,
                f"stage {self.name!r} must need at least 1 slot, got {self.slots}: a turn occupies one",
            )
        if self.rows_waiting < 0:
            raise StageViewError(
                self.name,
                f"rows waiting at stage {self.name!r} must be zero or more, got {self.rows_waiting}: "
                "its queue has miscounted",
            )

    @property
    def has_work(self) -> bool:
        """Whether a turn would do anything."""
        return self.rows_waiting > 0 or self.flush

    @property
    def fullness(self) -> float:
        """Rows that wait, of a planned batch; 1 where no plan is known."""
        return self.rows_waiting / self.planned_rows if self.planned_rows else 1.0

    @property
    def full(self) -> bool:
        """Whether a whole batch waits, or a flush."""
        return self.flush or (self.fullness >= 1.0 and self.rows_waiting >= self.block_rows)

    @property
    def short_of_block(self) -> bool:
        """Whether fewer rows wait than its operator makes anything of."""
        return self.rows_waiting < self.block_rows and not self.flush

    @property
    def blocked(self) -> bool:
        """Whether the rows that wait make nothing yet: their block, or window, is not complete."""
        deferred = self.context is not None and self.context.deferred and not self.flush
        return deferred or self.short_of_block
