"""What a stage's turns cost and what they make of their rows, learned while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from penstock.errors import PenstockError
from penstock.measure.turns import TurnRecord

TOO_LITTLE = 1e-9
"""Rows, or seconds, that nothing can be learned from."""


_KEPT = (
    "turns",
    "most_rows",
    "weight",
    "rows",
    "rows_squared",
    "seconds",
    "rows_seconds",
    "rows_in",
    "rows_out",
    "state_seconds",
    "slots",
)


class ProfileError(PenstockError):
    """A way of learning that could not learn."""


@dataclass(frozen=True, slots=True)
class StageProfile:
    """The cost of a stage's rows, by its last turns."""

    seconds_per_row: float
    """Seconds of turn for a row taken, at the sizes that turns had; always positive."""
    selectivity: float
    """Rows out per row in."""
    fixed_seconds: float
    """c0 of C(n) = c0 + c1*n, the seconds of a turn of n rows."""
    row_seconds: float
    """c1 of it; with k slots, n counts up to a multiple of k."""
    turns: int
    """How many it was learned from."""
    mean_seconds: float = 0.0
    """Of a turn, at the sizes they had."""
    most_rows: int = 0
    """Of a turn; one long past counts less."""
    state_seconds: float = 0.0
    """sigma: by how much the first turn after a start was longer, as state is loaded; 0 without state."""
    slots: int = 1
    """Of the turns for which c1 holds: a pool may have fewer than were declared, a controller give others."""

    @property
    def trusted(self) -> bool:
        """Whether turns may be put off for what it says."""
        return self.turns >= Profiler.TRUSTED_TURNS

    def turn_seconds(self, rows: int) -> float:
        """C(n): how long a turn of `rows` rows is expected to take."""
        return self.fixed_seconds + self.row_seconds * rows


class Profiler:
    """Learns the profile of one stage from its turns; what is long past weighs less and less.

    A turn weighs `keep` times as much as the one after it, and less while there were few: code warms up
    as it runs. The first turn is cold (Spark compiles
    it), so it counts only until there is another; a turn that took over `OUTLIER` times what was
    expected counts as that, so that one pause of the machine does not spoil the profile, while
    a stage that has become slower is still learned within some turns. Of the first turn after a start, what
    goes beyond the profile is the time to load state; the first turns of another run are cold again, and
    change nothing that is trusted. Not safe for threads.
    """

    OUTLIER = 4.0
    TRUSTED_TURNS = 5
    WARMING_TURNS = 2
    COLD_TURNS = 2
    """Of another run, what is passed over."""
    USUAL_FIXED_SECONDS = 0.1
    PRIOR_WEIGHT = 0.2

    def __init__(self, keep: float = 0.95) -> None:
        if not 0.0 < keep <= 1.0:
            raise ProfileError(
                f"a profiler must keep a share over 0 and up to 1, got {keep}: nothing could be learned"
            )
        self._keep = keep
        self._turns = 0
        self._most_rows = 0.0
        self._least = inf
        self._cold = 0
        self._first: tuple[float, float] | None = None
        self._state_seconds = 0.0
        self._slots = 0
        """Of its turns; 0 while that is not known."""
        self._clear()

    def _clear(self) -> None:
        # Weighted sums over turns, of 1, rows, rows squared, seconds, rows * seconds, rows in, rows out.
        self._weight = self._rows = self._rows_squared = 0.0
        self._seconds = self._rows_seconds = self._rows_in = self._rows_out = 0.0

    def learn(
        self,
        record: TurnRecord,
        rows_out: int | None = None,
        *,
        loads_state: bool = False,
        cold: bool = False,
    ) -> None:
        """Takes a turn in; `rows_out` where the record does not know how many rows left.

        `loads_state`: it was the first after a start of a stage with state; `cold`: it loaded code on an
        executor that is new to the stage. Once enough is known neither says what others will cost.
        """
        self.rescale(record.slots)
        if loads_state:
            self._first = _rounded(record), record.turn_seconds
        trusted = self._turns >= self.TRUSTED_TURNS
        if not (trusted and (loads_state or cold or self._cold > 0)):
            self._take(record, rows_out)
        self._cold = max(self._cold - 1, 0)
        if self._first is not None and self._turns >= self.TRUSTED_TURNS:
            self._learn_state(*self._first)
            self._first = None

    def _learn_state(self, rows: float, seconds: float) -> None:
        if self._rows < TOO_LITTLE or self._seconds < TOO_LITTLE:
            return
        fixed, per_row = self._costs()
        excess = max(seconds - fixed - per_row * rows, 0.0)
        self._state_seconds = (self._state_seconds + excess) / 2 if self._state_seconds else excess

    def _take(self, record: TurnRecord, rows_out: int | None) -> None:
        if self._turns == 1 and self._rows > 0 and record.rows_in > 0:
            self._clear()
        rows = _rounded(record)
        seconds = record.turn_seconds
        if self._turns >= self.TRUSTED_TURNS and self._rows > TOO_LITTLE and self._seconds > TOO_LITTLE:
            # The most that C(n) can say: what turns take on average, in proportion where this one is larger.
            expected = self._seconds / self._weight * max(1.0, rows * self._weight / self._rows)
            seconds = min(seconds, self.OUTLIER * expected)
        self._least = min(self._least / self._keep, seconds)
        keep = min(self._keep, self._turns / (self._turns + self.WARMING_TURNS)) if self._keep < 1.0 else 1.0
        self._turns += 1
        self._most_rows = max(self._keep * self._most_rows, record.rows_in)
        self._weight = keep * self._weight + 1.0
        self._rows = keep * self._rows + rows
        self._rows_squared = keep * self._rows_squared + rows * rows
        self._seconds = keep * self._seconds + seconds
        self._rows_seconds = keep * self._rows_seconds + rows * seconds
        self._rows_in = keep * self._rows_in + record.rows_in
        self._rows_out = keep * self._rows_out + (record.rows_out if rows_out is None else rows_out)

    def rescale(self, slots: int) -> None:
        """Turns have so many slots from now on: rows are expected to take the longer the fewer these are."""
        before, self._slots = self._slots or slots, slots
        if before == slots or self._rows < TOO_LITTLE or self._seconds < TOO_LITTLE:
            return
        factor = before / slots
        fixed, per_row = self._costs()
        self._seconds = fixed * self._weight + factor * per_row * self._rows
        self._rows_seconds = fixed * self._rows + factor * per_row * self._rows_squared

    def to_json(self) -> dict[str, float]:
        """What it has learned, for another run."""
        kept = {name: getattr(self, f"_{name}") for name in _KEPT}
        return kept | {"least": self._least if self._least < inf else -1.0}

    @classmethod
    def from_json(cls, stored: Mapping[str, float]) -> Profiler:
        """One that goes on where another stopped."""
        made = cls()
        # Files from before they were counted apart have no rows_in, older ones no state or slots.
        known = {"rows_in": stored["rows"], "state_seconds": 0.0, "slots": 0, **stored}
        for name in _KEPT:
            setattr(made, f"_{name}", known[name])
        made._turns = int(stored["turns"])
        made._slots = int(known["slots"])
        made._least = stored["least"] if stored["least"] >= 0.0 else inf
        made._cold = cls.COLD_TURNS
        return made

    @property
    def profile(self) -> StageProfile | None:
        """What is known; None before the first turn with rows that took any time."""
        # Turns that only flush, for very long, let the rows fade to nothing.
        if self._rows < TOO_LITTLE or self._seconds < TOO_LITTLE:
            return None
        fixed, per_row = self._costs()
        return StageProfile(
            seconds_per_row=self._seconds / self._rows,
            selectivity=self._rows_out / self._rows_in if self._rows_in > TOO_LITTLE else 1.0,
            fixed_seconds=fixed,
            row_seconds=per_row,
            turns=self._turns,
            mean_seconds=self._seconds / self._weight,
            most_rows=round(self._most_rows),
            state_seconds=self._state_seconds,
            slots=max(self._slots, 1),
        )

    def _costs(self) -> tuple[float, float]:
        """(c0, c1) by least squares, neither negative.

        A turn without rows is taken to have been there too, of the usual fixed cost, or shorter if one was:
        turns of about one size say nothing of c0, and noise would make all of it c0. Nor is c0 more than the
        shortest turn was: while code warms up larger turns are quicker than the smaller ones before them, and
        a stage that is believed to cost much without any rows would be held back, and never learn better.
        """
        own_rows, own_seconds = self._rows / self._weight, self._seconds / self._weight
        together = self._rows_seconds / self._weight - own_rows * own_seconds
        if together <= 0.0:
            return self._split(min(self.USUAL_FIXED_SECONDS, self._least))
        prior = self.PRIOR_WEIGHT
        weight, seconds = (
            self._weight + prior,
            self._seconds + prior * min(self.USUAL_FIXED_SECONDS, self._least),
        )
        mean_rows, mean_seconds = self._rows / weight, seconds / weight
        spread = self._rows_squared / weight - mean_rows**2
        per_row = (self._rows_seconds / weight - mean_rows * mean_seconds) / spread if spread > 0.0 else 0.0
        fixed = mean_seconds - per_row * mean_rows
        if fixed < 0.0:
            return 0.0, self._rows_seconds / self._rows_squared
        if per_row <= 0.0 or fixed > self._least:
            return self._split(self._least)
        return fixed, per_row

    def _split(self, fixed: float) -> tuple[float, float]:
        """(c0, c1) by which a turn of the mean size takes the mean time, if c0 is this."""
        rows, seconds = self._rows / self._weight, self._seconds / self._weight
        fixed = min(fixed, seconds)
        return fixed, (seconds - fixed) / rows


def _rounded(record: TurnRecord) -> int:
    """Its rows, rounded up: on several slots a turn takes as long as the slot that has most of them."""
    return -(-record.rows_in // record.slots) * record.slots
