"""Figures of every stage over a step, from what was fed in and the turns that ran; alike for both sides."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from penstock.measure.stage_meter import StageFigures, StageMeter
from penstock.measure.turns import NO_TURN_YET, TurnRecord
from penstock.queues.segment import Arrivals
from penstock.spark.turn_input import Portion, TurnInput
from penstock.stages.stage import StageGraph

Tick = tuple[float, int]
"""When rows were fed in, and how many."""
BINS = 40


@dataclass(frozen=True)
class _Event:
    at: float
    order: int
    kind: Literal["came", "began", "ended"]
    stage: str
    rows: int
    turn: TurnRecord | None = None


def figures_of(
    graph: StageGraph, ticks: Sequence[Tick], turns: Iterable[TurnRecord], begin: float, end: float
) -> dict[str, StageFigures]:
    """Figures of each stage from `begin` to `end`; ticks and turns reach back to an empty pipeline."""
    events = sorted(_events(graph, ticks, turns), key=lambda event: (event.at, event.order))
    first = min([begin, *(event.at for event in events)])
    followed = {stage.name: _Followed(first, end - begin) for stage in graph.stages}
    for event in events:
        if event.at <= end:
            followed[event.stage].take(event)
    return {name: each.meter.figures(end) for name, each in followed.items()}


def backlogs(
    graph: StageGraph, ticks: Sequence[Tick], turns: Iterable[TurnRecord], begin: float, end: float
) -> dict[str, tuple[float, float]]:
    """Rows that wait for each stage, on average over the first and over the last third of the time."""
    third = (end - begin) / 3
    changes: dict[str, list[tuple[float, int]]] = {stage.name: [] for stage in graph.stages}
    for event in _events(graph, ticks, turns):
        if event.kind != "ended":
            changes[event.stage].append((event.at, event.rows if event.kind == "came" else -event.rows))
    return {
        name: (_mean_rows(found, begin, begin + third), _mean_rows(found, end - third, end))
        for name, found in changes.items()
    }


def _mean_rows(changes: Sequence[tuple[float, int]], begin: float, end: float) -> float:
    """Of a queue that changes so; it is never negative, though a turn may count rows that come during it."""
    rows, total, since = 0, 0.0, begin
    for at, change in sorted(changes):
        if at >= end:
            break
        if at > since:
            total += max(rows, 0) * (at - since)
            since = at
        rows += change
    return (total + max(rows, 0) * (end - since)) / (end - begin)


def _events(graph: StageGraph, ticks: Sequence[Tick], turns: Iterable[TurnRecord]) -> Iterator[_Event]:
    fed = [queue for queue in graph.queues.values() if queue.source is not None]
    for queue in fed:
        for at, rows in ticks:
            for consumer in queue.consumers:
                yield _Event(at, 0, "came", consumer, rows)
    for turn in turns:
        yield _Event(turn.granted_at, 1, "began", turn.stage, turn.rows_in, turn)
        yield _Event(turn.finished_at, 2, "ended", turn.stage, turn.rows_in, turn)
        output = graph.stage(turn.stage).output
        for consumer in graph.queues[output].consumers if output else ():
            yield _Event(turn.finished_at, 0, "came", consumer, turn.rows_out)


class _Followed:
    """One stage: its queue, row by row in order of arrival, and its meter."""

    def __init__(self, started_at: float, seconds: float):
        self.meter = StageMeter(started_at, seconds, BINS)
        self._queue: deque[list[float]] = deque()
        self._rows = 0
        self._last_end = NO_TURN_YET
        self._took: list[Portion] = []
        # Rows that the running turn has, but that had not come when it began: Spark looks a moment later.
        self._owed = 0

    def take(self, event: _Event) -> None:
        if event.kind == "came":
            self._came(event.at, event.rows)
            return
        assert event.turn is not None
        if event.kind == "began":
            self._took, self._owed = [], event.rows
            self._hand_over()
            self.meter.turn_started(event.at, event.turn.slots)
            self.meter.queue_changed(self._rows, event.at)
            return
        times = TurnInput(tuple(self._took)).times(
            self._last_end, event.turn.granted_at, event.turn.finished_at
        )
        self._last_end = event.turn.finished_at
        self.meter.turn_finished(
            replace(
                event.turn,
                queue_seconds=times.queue_seconds,
                schedule_seconds=times.schedule_seconds,
                compute_seconds=times.compute_seconds,
            )
        )

    def _came(self, at: float, rows: int) -> None:
        if not rows:
            return
        self._queue.append([at, rows])
        self._rows += rows
        self._hand_over()
        self.meter.queue_changed(self._rows, at, rows)

    def _hand_over(self) -> None:
        """Gives the running turn the oldest rows, up to as many as it took."""
        while self._owed > 0 and self._queue:
            came, there = self._queue[0]
            taken = min(self._owed, int(there))
            self._took.append(Portion(taken, Arrivals(), came))
            self._owed -= taken
            self._rows -= taken
            if taken == there:
                self._queue.popleft()
            else:
                self._queue[0][1] = there - taken


def as_numbers(
    figures: Mapping[str, StageFigures], waiting: Mapping[str, tuple[float, float]]
) -> dict[str, dict[str, float]]:
    """The figures that a bench keeps, by stage; `waiting` are the rows early and late in the step."""
    return {
        name: {
            "arrival": each.arrival_rows_per_second,
            "service": each.service_rows_per_second,
            "utilisation": each.utilisation,
            "queue_seconds": each.queue_seconds,
            "schedule_seconds": each.schedule_seconds,
            "compute_seconds": each.compute_seconds,
            "rows_in": float(each.rows_in),
            "rows_out": float(each.rows_out),
            "waiting_early": waiting[name][0],
            "waiting_late": waiting[name][1],
            "slot_seconds": each.slot_seconds,
            "seconds": each.seconds,
            "turns": float(each.turns),
        }
        for name, each in figures.items()
    }
