"""Where arrivals and turns meet the meters of slots: from segments' metadata and turn records alone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING

from penstock.measure.flow import FlowMeter
from penstock.measure.inputs import MOST_OPEN, InputMeter
from penstock.measure.lineage import Lineage, Origin
from penstock.measure.moments import Spread
from penstock.measure.slot_figures import SlotFigures, SlotMeasuring, StageSlotFigures, StageSlotMeter
from penstock.measure.turns import TurnRecord
from penstock.queues.segment import Segment
from penstock.spark.turn_input import TurnInput
from penstock.stages.stage import StageGraph

if TYPE_CHECKING:
    from penstock.spark.compile import RunningStage

OUTSIDE = "@"
"""Before the name of a queue from outside: a stage that is a source alone may have the same name."""
PATIENCE = 10.0
"""Times T_m, or the mean time of inputs, after which one that is not done is given up."""
MOST_IN_LOOPS = 100
"""Inputs that are followed at a time where rows go round: there all of them seem to stay, and every turn
goes through those it has rows of."""


class SlotMeters:
    """The meters of one pipeline; every method may be called from any thread."""

    def __init__(self, graph: StageGraph, now: float, measuring: SlotMeasuring):
        self._lock = threading.Lock()
        self._measuring = measuring
        topics = {name: queue for name, queue in graph.queues.items() if queue.topic is not None}
        self._outputs = {
            stage.name: None if stage.output in topics else stage.output for stage in graph.stages
        }
        self._native = {stage.name: stage.inputs[0] for stage in graph.stages if stage.native is not None}
        self._outside = {name: queue.consumers for name, queue in graph.queues.items() if not queue.producers}
        self._outside |= {source: (stage,) for stage, source in self._native.items()}
        self._outside_rows = dict.fromkeys(self._outside, 0)
        # What comes out of a topic is not known by the turn that wrote it: it is followed as new.
        self._outside |= {name: queue.consumers for name, queue in topics.items()}
        readers = {name: len(queue.consumers) for name, queue in graph.queues.items()}
        readers |= dict.fromkeys(self._native.values(), 1)
        self._stages = {stage.name: StageSlotMeter(now, measuring) for stage in graph.stages}
        most_open = MOST_IN_LOOPS if _loops(graph) else MOST_OPEN
        patience = PATIENCE * measuring.interval_seconds
        self._lineage = Lineage(InputMeter(now, measuring.every_inputs, most_open, patience), readers)
        self._producers = {name: queue.producers for name, queue in graph.queues.items()}
        self._flows = {stage.name: FlowMeter() for stage in graph.stages}
        self._outside_rates = {queue: measuring.smoothing() for queue in self._outside_rows}
        self._inputs, self._per_input = 0, 1.0
        self._input_gaps, self._last_input, self._input_scv = Spread(), inf, 1.0
        self._smooth_scv = measuring.smoothing()
        self._began = self._started_at = now
        self._figures: SlotFigures | None = None

    def arrived(self, stage: str, queue: str, segment: Segment) -> None:
        """A segment waits at the stage for the first time."""
        with self._lock:
            self._stages[stage].arrived(segment.published, segment.rows)
            if queue in self._outside and segment.published >= self._started_at:
                came = segment.arrivals.mean if segment.arrivals.bins else segment.published
                if queue in self._outside_rows and stage == self._outside[queue][0]:
                    self._came(queue, segment.rows)
                    self._gap_until(came)
                self._lineage.arrived(self._origin(queue, segment), came)

    def _came(self, queue: str, rows: int) -> None:
        """An input from outside."""
        self._outside_rows[queue] += rows
        self._inputs += 1

    def _gap_until(self, at: float) -> None:
        """The time since the input before."""
        if self._last_input < inf:
            self._input_gaps.add(max(at - self._last_input, 0.0))
            at = max(at, self._last_input)
        self._last_input = at

    def _origin(self, queue: str, segment: Segment) -> Origin:
        """Segments from outside by their place in the queue, those of stages by the turn that made them."""
        number = segment.sequence if queue in self._outside else segment.batch
        return Origin(queue, segment.producer, number)

    def passed(self, stage: str, took: TurnInput, batch: int, rows_out: int, at: float) -> None:
        """A turn of the stage is about to show what it made."""
        output = self._outputs[stage]
        made = Origin(output, stage, batch) if output is not None and rows_out else None
        taken = [
            (self._origin(each.queue, each.segment), each.whole)
            for each in took.portions
            if each.segment is not None
        ]
        with self._lock:
            if stage in self._native and took.rows and not taken:
                taken = [(self._read_by_spark(stage, took, batch), True)]
            self._lineage.passed(stage, taken, made, at)
            rows: Counter[str] = Counter()
            for each in took.portions:
                rows[each.queue] += each.rows
            self._flows[stage].passed(rows, rows_out)

    def _read_by_spark(self, stage: str, took: TurnInput, batch: int) -> Origin:
        """What Spark reads from its own source is an input when it is taken: nobody saw it come."""
        origin = Origin(self._native[stage], stage, batch)
        if stage in self._outside[origin.queue]:
            self._came(origin.queue, took.rows)
        for portion in took.portions:
            self._stages[stage].arrived(portion.came, portion.rows)
        self._lineage.arrived(origin, took.arrivals.mean)
        return origin

    def ended(self, record: TurnRecord) -> None:
        """A turn has ended."""
        with self._lock:
            self._stages[record.stage].ended(record)

    def slots_changed(self, stage: str) -> None:
        """The stage goes on with other slots."""
        with self._lock:
            self._stages[stage].slots_changed()

    @property
    def figures(self) -> SlotFigures | None:
        """As of the last interval that ended; None before the first."""
        return self._figures

    def look(self, now: float, stages: Iterable[RunningStage]) -> SlotFigures | None:
        """The figures of an interval that has just ended; None where none has."""
        with self._lock:
            seconds = now - self._began
            if seconds < self._measuring.interval_seconds - 1e-9:
                return None
            # Inputs are counted here: what comes out of a topic is followed as new, but was counted before.
            inputs = self._lineage.look(now).counted(self._inputs)
            turns = self._lineage.take_turns()
            found = {
                stage.name: self._of(stage, now, turns[stage.name], inputs.inputs_done) for stage in stages
            }
            self._began = now
            self._look_at_inputs()
            rates = self._rates(seconds)
            made = {stage: self._rows_made(stage) for stage in found}
            self._figures = SlotFigures(
                now, sum(rates.values()), inputs, found, made, self._per_input, self._input_scv, rates
            )
            return self._figures

    def _look_at_inputs(self) -> None:
        """What the interval tells of inputs; where it tells nothing of a figure, that stays as it was."""
        if self._inputs:
            self._per_input = sum(self._outside_rows.values()) / self._inputs
        if self._input_gaps.count > 1 and self._input_gaps.mean > 0.0:
            self._input_scv = self._smooth_scv.smooth(self._input_gaps.scv)
        self._inputs, self._input_gaps = 0, Spread()

    def _rates(self, seconds: float) -> dict[str, float]:
        """Rows a second of each queue from outside."""
        rows, self._outside_rows = self._outside_rows, dict.fromkeys(self._outside_rows, 0)
        return {
            OUTSIDE + queue: self._outside_rates[queue].smooth(each / seconds) for queue, each in rows.items()
        }

    def _rows_made(self, stage: str) -> dict[str, float]:
        """By the stages that write what it reads, and the queues from outside."""
        by_queue = self._flows[stage].rows_made
        self._flows[stage].fade()
        return {
            producer: rows
            for queue, rows in by_queue.items()
            for producer in self._producers.get(queue) or (OUTSIDE + (queue or self._native[stage]),)
        }

    def _of(self, stage: RunningStage, now: float, turns: int, inputs_done: int) -> StageSlotFigures:
        figures = self._stages[stage.name].look(now, stage.slots, turns, inputs_done)
        profile = stage.place.profiles.of(stage.name)
        return figures if profile is None else figures.with_costs(profile.fixed_seconds)


def _loops(graph: StageGraph) -> bool:
    return any(queue.loop_schema is not None for queue in graph.queues.values())
