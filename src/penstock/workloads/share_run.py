"""What one side's run of the shared pool told, and the figures that follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.bench.stats import quantile
from penstock.measure.rate_clock import RateClock
from penstock.workloads.shared_pool import LOADS, Group, Load, Side

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Sample:
    """The result of one window: completed when, at the sink how much later; `missing`: not there yet."""

    pipeline: str
    completed_at: float
    latency_seconds: float
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a pipeline, where its side has such."""

    granted_at: float
    rows: int
    slots: int
    seconds: float


@dataclass(frozen=True)
class Score:
    """Figures of a pipeline, or of a group of them: latencies over a span of time, rows since the start."""

    name: str
    target_seconds: float
    samples: tuple[Sample, ...]
    rows_done: int
    rows_due: int

    @property
    def results(self) -> int:
        """Windows whose result is there."""
        return sum(not sample.missing for sample in self.samples)

    @property
    def missing(self) -> int:
        return len(self.samples) - self.results

    @property
    def latencies(self) -> list[float]:
        return [sample.latency_seconds for sample in self.samples]

    @property
    def p50(self) -> float:
        """Not a number before the first window is complete, as is `p99`."""
        return quantile(self.latencies, 0.5)

    @property
    def p99(self) -> float:
        return quantile(self.latencies, 0.99)

    @property
    def backlog_rows(self) -> int:
        """Rows that could have been read and are not done."""
        return max(self.rows_due - self.rows_done, 0)

    @property
    def share_done(self) -> float:
        """Rows done, of those that could have been."""
        return self.rows_done / self.rows_due if self.rows_due else math.nan

    @property
    def share_in_time(self) -> float:
        """Results within the target, of all that came or are overdue; not a number without any."""
        in_time = sum(not each.missing and not self._is_late(each) for each in self.samples)
        late = sum(self._is_late(each) for each in self.samples)
        return in_time / (in_time + late) if in_time + late else math.nan

    def _is_late(self, sample: Sample) -> bool:
        return sample.latency_seconds > self.target_seconds


def ratio(one: float, other: float) -> float:
    """How many times `other` goes into `one`; not a number where nothing can be said."""
    return one / other if other > 0 else math.nan


def total(name: str, scores: Sequence[Score]) -> Score:
    """Several pipelines of one target as one."""
    return Score(
        name,
        scores[0].target_seconds,
        tuple(sample for score in scores for sample in score.samples),
        sum(score.rows_done for score in scores),
        sum(score.rows_due for score in scores),
    )


@dataclass
class _Told:
    """What a pipeline has told so far. `read`: (time, seconds of its source read) after each batch."""

    clock: RateClock | None = None
    results: dict[float, float] = field(default_factory=dict)
    read: list[tuple[float, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    def seconds_read(self, until: float) -> int:
        return max((seconds for at, seconds in self.read if at <= until), default=0)


class ShareRun:
    """Takes a side's events as they come and gives its figures, at any time.

    A window's latency runs from the moment at which the row that completes it is readable to the moment
    its result is at the sink. A result that is not there at the end counts with the time until then.
    Rows are done when the batch that read them has delivered its result: they are taken from the offsets
    that Spark logs for every batch, in the same way on all sides. They count from the start, warm-up
    included: a side must not gain by working off in the measured time what it left lying before.
    """

    def __init__(self, side: Side, warmup_seconds: float, loads: Sequence[Load] = LOADS):
        self.side = side
        self.loads = tuple(loads)
        self.warmup_seconds = warmup_seconds
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.error = ""
        self._told = {load.name: _Told() for load in loads}

    def take(self, event: Event) -> None:
        """Counts one event of the worker."""
        kind = event["event"]
        if kind == "started":
            self.started_at = event["at"]
        elif kind == "ended":
            self.ended_at = event["at"]
        elif kind == "failed":
            self.error = event["why"]
        elif kind == "source":
            load = self._load(event["pipeline"])
            self._told[load.name].clock = RateClock(event["created_ms"], load.rows_per_second)
        elif kind == "batch":
            self._batch(event)
        elif kind == "turn":
            turn = Turn(event["granted_at"], event["rows"], event["slots"], event["seconds"])
            self._told[event["pipeline"]].turns.append(turn)

    def _batch(self, event: Event) -> None:
        told = self._told[event["pipeline"]]
        told.read.append((event["at"], event["seconds_read"]))
        load = self._load(event["pipeline"])
        for end, rows in event["windows"]:
            told.results.setdefault(end, event["at"])
            wanted = told.clock.rows_in(end, load.window_seconds) if told.clock else None
            if wanted is not None and rows != wanted:
                told.wrong.append(f"{load.name}: window until {end:.0f} has {rows} rows of {wanted}")

    def _load(self, name: str) -> Load:
        return next(load for load in self.loads if load.name == name)

    def turns(self, load: Load) -> tuple[Turn, ...]:
        """The turns of a pipeline, warm-up included; none on sides without a scheduler of ours."""
        return tuple(self._told[load.name].turns)

    def results_at(self, load: Load) -> tuple[float, ...]:
        """When the batches of a pipeline had their results at the sink."""
        return tuple(at for at, _ in self._told[load.name].read)

    def windows_at(self, load: Load) -> tuple[float, ...]:
        """When the windows of a pipeline were at the sink, in order."""
        return tuple(sorted(self._told[load.name].results.values()))

    def created_at(self, load: Load) -> float | None:
        """When Spark created the pipeline's source, in epoch seconds; None before that is known."""
        clock = self._told[load.name].clock
        return None if clock is None else clock.created_ms / 1000

    @property
    def measured_from(self) -> float:
        """The end of the warm-up; never, before the start."""
        return math.inf if self.started_at is None else self.started_at + self.warmup_seconds

    @property
    def wrong_counts(self) -> list[str]:
        """Windows whose count is not what the source made: there must be none."""
        return [text for told in self._told.values() for text in told.wrong]

    def samples(self, load: Load, begin: float, end: float) -> tuple[Sample, ...]:
        """One for each window that was completed in that span."""
        told = self._told[load.name]
        if told.clock is None:
            return ()
        found = []
        for window_end, completed in told.clock.completed_between(load.window_seconds, begin, end):
            at = told.results.get(window_end, math.inf)
            found.append(Sample(load.name, completed, max(min(at, end) - completed, 0.0), at > end))
        return tuple(found)

    def score(self, load: Load, now: float) -> Score:
        """Figures since the warm-up ended, as if the run ended `now`; of the warm-up, as long as it lasts."""
        end = self.ended_at or now
        begin = self.measured_from if end >= self.measured_from else self.started_at or end
        told = self._told[load.name]
        rows_done = told.seconds_read(end) * load.rows_per_second
        rows_due = told.clock.due_rows(end) if told.clock else 0
        return Score(load.name, load.target_seconds, self.samples(load, begin, end), rows_done, rows_due)

    def scores(self, now: float = math.inf) -> list[Score]:
        """Figures of each pipeline; a run that has ended needs no `now`."""
        return [self.score(load, now) for load in self.loads]

    def group(self, group: Group, now: float = math.inf) -> Score:
        """The pipelines of a group as one."""
        return total(group, [self.score(load, now) for load in self.loads if load.group == group])
