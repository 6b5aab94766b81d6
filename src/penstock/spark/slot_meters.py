"""Where arrivals and turns meet the meters of slots: from segments' metadata and turn records alone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.measure.flow import FlowMeter
from penstock.measure.inputs import InputMeter
from penstock.measure.lineage import Lineage, Origin
from penstock.measure.moments import Spread
from penstock.measure.slot_figures import SlotFigures, SlotMeasuring, StageSlotFigures, StageSlotMeter
from penstock.measure.turns import TurnRecord
from penstock.queues.segment import Segment
from penstock.spark.turn_input import TurnInput
from penstock.stages.stage import StageGraph

if TYPE_CHECKING:
    from penstock.spark.compile import RunningStage


OUTSIDE = ""


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
        self._counted = frozenset(self._outside)
        # What comes out of a topic is not known by the turn that wrote it: it is followed as new.
        self._outside |= {name: queue.consumers for name, queue in topics.items()}
        readers = {name: len(queue.consumers) for name, queue in graph.queues.items()}
        readers |= dict.fromkeys(self._native.values(), 1)
        self._stages = {stage.name: StageSlotMeter(now, measuring) for stage in graph.stages}
        self._lineage = Lineage(InputMeter(now, measuring.every_inputs), readers)
        self._producers = {name: queue.producers for name, queue in graph.queues.items()}
        self._flows = {stage.name: FlowMeter() for stage in graph.stages}
        self._outside_rows = self._inputs = 0
        self._outside_rate = measuring.smoothing()
        self._input_gaps, self._last_input = Spread(), now
        self._began = self._started_at = now
        self._figures: SlotFigures | None = None

    def arrived(self, stage: str, queue: str, segment: Segment) -> None:
        """A segment waits at the stage for the first time."""
        with self._lock:
            self._stages[stage].arrived(segment.published, segment.rows)
            if queue in self._outside and segment.published >= self._started_at:
                came = segment.arrivals.mean if segment.arrivals.bins else segment.published
                if queue in self._counted and stage == self._outside[queue][0]:
                    self._outside_rows += segment.rows
                    self._came(came)
                self._lineage.arrived(self._origin(queue, segment), came)

    def _came(self, at: float) -> None:
        """An input from outside."""
        if self._inputs:
            self._input_gaps.add(max(at - self._last_input, 0.0))
        self._inputs += 1
        self._last_input = max(at, self._last_input)

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
        self._outside_rows += took.rows
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
            inputs = self._lineage.meter.look(now)
            turns = self._lineage.take_turns()
            rate = self._outside_rate.smooth(self._outside_rows / seconds)
            found = {
                stage.name: self._of(stage, now, turns[stage.name], inputs.inputs_done) for stage in stages
            }
            per_input = self._outside_rows / inputs.inputs_per_second / seconds if self._outside_rows else 1.0
            self._began, self._outside_rows = now, 0
            made = {stage: self._rows_made(stage) for stage in found}
            scv = self._input_gaps.scv if self._input_gaps.count > 1 else 1.0
            self._figures = SlotFigures(now, rate, inputs, found, made, per_input, scv)
            return self._figures

    def _rows_made(self, stage: str) -> dict[str, float]:
        """By the stages that write what it reads."""
        by_queue = self._flows[stage].rows_made
        self._flows[stage].fade()
        return {
            producer: rows
            for queue, rows in by_queue.items()
            for producer in self._producers.get(queue) or (OUTSIDE,)
        }

    def _of(self, stage: RunningStage, now: float, turns: int, inputs_done: int) -> StageSlotFigures:
        figures = self._stages[stage.name].look(now, stage.slots, turns, inputs_done)
        profile = stage.place.profiles.of(stage.name)
        return figures if profile is None else figures.with_costs(profile.fixed_seconds)
