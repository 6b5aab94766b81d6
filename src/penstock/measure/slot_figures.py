"""What models and plans of slots go by: figures of stages and of the inputs of a pipeline, by interval."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from penstock.errors import PenstockError
from penstock.measure.inputs import InputFigures
from penstock.measure.moments import MomentMeter, Spread, StageMoments
from penstock.measure.smoothing import Smoothing, WindowSmoothing
from penstock.measure.turns import TurnRecord

LAST_TURNS = 150
"""Of a stage, from which it is learned what they cost."""


@dataclass(frozen=True)
class SlotMeasuring:
    """How slots are measured for: on two levels, as in DRS, section IV-A."""

    interval_seconds: float = 60.0
    """T_m: what was sampled for so long is one measurement."""
    every_rows: int = 1
    """N_m: times are sampled once in so many rows."""
    every_inputs: int = 1
    """One in so many inputs is followed until all that was derived from it is done."""
    smoothing: Callable[[], Smoothing] = lambda: WindowSmoothing(3)
    """Over measurements; makes one for each figure."""

    def __post_init__(self) -> None:
        if not self.interval_seconds > 0.0 or min(self.every_rows, self.every_inputs) < 1:
            raise PenstockError(
                "slots must be measured over intervals of some length and every 1 or more rows and inputs, "
                f"got {self.interval_seconds} s, {self.every_rows} and {self.every_inputs}: "
                "nothing would be known"
            )


@dataclass(frozen=True)
class StageSlotFigures:
    """Of one stage."""

    moments: StageMoments
    """lambda_i, mu_i, a_i, s_i."""
    slots: int
    sojourn_seconds: float = 0.0
    """E[T_i] of a row as measured; 0.0 before any was."""
    turns_per_input: float = 0.0
    """In how many turns of the stage an input has a part; 0.0 before any is known."""
    segment_seconds: float = 0.0
    """Between segments that arrive; 0.0 before two came."""
    fixed_seconds: float = 0.0
    """c0 of a turn."""
    row_seconds: float = 0.0
    """c1: slot seconds for a row."""
    turn_seconds: float = 0.0
    """Of a turn with rows, on average."""
    turn_rounds: float = 0.0
    """Rows of the slot that has most of a turn, on average."""
    shortest_seconds: float = 0.0
    """Of the turns of late."""
    turns: tuple[tuple[int, int, int, float], ...] = field(default=(), repr=False)
    """The last ones with rows: rows in, rows out, slots, seconds."""

    def with_costs(self, fixed_seconds: float) -> StageSlotFigures:
        """With c0 and c1, given c0 as it was learned from turns of different sizes.

        Where rows take long and turns are of about one size, their spread would be taken for c0;
        but no turn is shorter than that. What is left of the mean turn its rows take.
        """
        fixed = min(fixed_seconds, self.shortest_seconds)
        row = (self.turn_seconds - fixed) / self.turn_rounds if self.turn_rounds > 0.0 else 0.0
        return replace(self, fixed_seconds=fixed, row_seconds=max(row, 0.0))

    @property
    def known(self) -> bool:
        """Whether there is enough for a model."""
        return self.moments.known


@dataclass(frozen=True)
class SlotFigures:
    """Of one pipeline, as of its last interval that ended."""

    at: float
    outside_rows_per_second: float
    """lambda_0, in rows."""
    inputs: InputFigures
    """Since the interval before: inputs are segments from outside."""
    stages: Mapping[str, StageSlotFigures]
    rows_made: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By stage, of each row from each of those it reads: stages, and what `outside` names."""
    rows_per_input: float = 1.0
    input_scv: float = 1.0
    """Squared coefficient of variation of the time between inputs."""
    outside: Mapping[str, float] = field(default_factory=dict)
    """The same by queue; empty where there is one, whose name is ""."""

    @property
    def sources(self) -> Mapping[str, float]:
        """Rows a second from outside, by the names that `rows_made` has for them."""
        return self.outside or {"": self.outside_rows_per_second}

    @property
    def surge(self) -> float:
        """What came from outside since the interval before, as a multiple of the smoothed rate."""
        return self._surge_of(self.inputs.inputs_per_second)

    @property
    def latest_surge(self) -> float:
        """The same of the interval's last third: a rate seldom changes just when an interval ends."""
        return self._surge_of(self.inputs.latest_per_second)

    def _surge_of(self, inputs_per_second: float) -> float:
        smoothed = self.outside_rows_per_second
        return inputs_per_second * self.rows_per_input / smoothed if smoothed > 0.0 else 1.0


class StageSlotMeter:
    """Follows one stage by its arrivals and turns. Not safe for threads."""

    def __init__(self, started_at: float, measuring: SlotMeasuring):
        self._measuring = measuring
        self._moments = MomentMeter(
            started_at, measuring.every_rows, measuring.interval_seconds, measuring.smoothing
        )
        self._started_at = self._last_segment = started_at
        self._sojourns, self._gaps = Spread(), Spread()
        self._turns, self._rounds = Spread(), Spread()
        self._shortest = self._shortest_before = inf
        self._input_turns = 0
        self._last_turns: deque[tuple[int, int, int, float]] = deque(maxlen=LAST_TURNS)
        figures = ("sojourn", "turns", "gap", "turn", "rounds")
        self._smooth = {name: measuring.smoothing() for name in figures}
        self._figures = StageSlotFigures(StageMoments(), 1)

    def arrived(self, at: float, rows: int) -> None:
        """A segment came; what was there before the start tells nothing of rates."""
        if at < self._started_at:
            return
        self._moments.arrived(at, rows)
        self._gaps.add(max(at - self._last_segment, 0.0))
        self._last_segment = max(at, self._last_segment)

    def ended(self, record: TurnRecord) -> None:
        """A turn took rows. Of its slots no more were busy than it had rows."""
        if not record.rows_in:
            return
        busy = min(record.slots, record.rows_in)
        self._moments.served(record.turn_seconds * busy, record.rows_in)
        seconds = record.queue_seconds + record.schedule_seconds + record.compute_seconds
        self._sojourns.add(seconds, record.rows_in)
        self._turns.add(record.turn_seconds)
        self._rounds.add(-(-record.rows_in // record.slots))
        self._shortest = min(self._shortest, record.turn_seconds)
        self._last_turns.append((record.rows_in, record.rows_out, record.slots, record.turn_seconds))

    def look(self, now: float, slots: int, turns: int, inputs_done: int) -> StageSlotFigures:
        """What the interval that ends now tells; where it tells nothing of a figure, that stays as it was."""
        last, sojourns, gaps = self._figures, self._sojourns, self._gaps
        sojourn, per_input, gap = last.sojourn_seconds, last.turns_per_input, last.segment_seconds
        if sojourns.count:
            sojourn = self._smooth["sojourn"].smooth(sojourns.mean)
        # Turns count to the inputs that are done next, which may be some intervals later.
        self._input_turns += turns
        if inputs_done and self._input_turns:
            per_input = self._smooth["turns"].smooth(self._input_turns / inputs_done)
            self._input_turns = 0
        if gaps.count > 1:
            gap = self._smooth["gap"].smooth(gaps.mean)
        self._sojourns, self._gaps = Spread(), Spread()
        made = StageSlotFigures(self._moments.look(now), slots, sojourn, per_input, gap)
        self._figures = self._with_turns(made)
        return self._figures

    def _with_turns(self, made: StageSlotFigures) -> StageSlotFigures:
        last, turns, rounds = self._figures, self._turns, self._rounds
        if not turns.count:
            seconds, mean, shortest = last.turn_seconds, last.turn_rounds, last.shortest_seconds
        else:
            seconds = self._smooth["turn"].smooth(turns.mean)
            mean = self._smooth["rounds"].smooth(rounds.mean)
            shortest = min(self._shortest, self._shortest_before)
            self._shortest, self._shortest_before = inf, self._shortest
        self._turns, self._rounds = Spread(), Spread()
        turned = tuple(self._last_turns)
        return replace(made, turn_seconds=seconds, turn_rounds=mean, shortest_seconds=shortest, turns=turned)

    def slots_changed(self) -> None:
        """What a row stayed before tells nothing of now."""
        self._sojourns, self._smooth["sojourn"] = Spread(), self._measuring.smoothing()
        self._figures = replace(self._figures, sojourn_seconds=0.0)
