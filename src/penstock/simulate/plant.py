"""What is simulated: stages with their costs, the queues between them, and how rows come in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from penstock.measure.chain import steepness
from penstock.measure.profiles import StageProfile
from penstock.model.traffic import rates_through
from penstock.scheduling.line import WindowSpan
from penstock.simulate.arrivals import Arrivals
from penstock.simulate.costs import TurnCost
from penstock.simulate.errors import SimulationError
from penstock.stages.stage import StageGraph


@dataclass(frozen=True, slots=True)
class WindowSetup:
    """A window over event time; `slide_seconds` equals `size_seconds` where windows do not overlap."""

    size_seconds: float
    slide_seconds: float
    late_seconds: float = 0.0

    @property
    def span(self) -> WindowSpan:
        return WindowSpan(self.slide_seconds, self.late_seconds)


@dataclass(frozen=True, slots=True)
class StageSetup:
    """One stage. It reads queues, and writes to a queue (`output`) or to a `sink`.

    `latency_seconds` is the least target below it, `target_seconds` that of its own sink. With `lanes`, rows
    are served singly, so many at a time, each by one slot: the cost is then that of one row. `selectivity`
    is rows out per row in. `profiled_rows` is the largest turn that its cost was learned from. One that is
    `native` takes all that waits, as Spark cuts its turns itself.
    """

    name: str
    pipeline: str
    cost: TurnCost
    inputs: tuple[str, ...]
    output: str | None = None
    sink: str | None = None
    latency_seconds: float | None = None
    target_seconds: float | None = None
    slots: int = 1
    lanes: int = 0
    selectivity: float = 1.0
    depth: int = 0
    window: WindowSetup | None = None
    tenant: str = ""
    share: float | None = None
    block_rows: int = 0
    profiled_rows: int = 0
    native: bool = False

    def profile(self, slots: int) -> StageProfile:
        """What an engine would have learned of it, on so many slots."""
        rows = max(self.profiled_rows, 1)
        per_row = self.cost.row_seconds / slots
        mean = self.cost.fixed_seconds + per_row * rows
        return StageProfile(
            seconds_per_row=max(mean / rows, 1e-12),
            selectivity=self.selectivity,
            fixed_seconds=self.cost.fixed_seconds,
            row_seconds=per_row,
            turns=1_000_000,
            mean_seconds=mean,
            most_rows=self.profiled_rows,
            slots=slots,
        )


@dataclass(frozen=True)
class Inflow:
    """Rows that come to a queue from outside. A queue may have several, of different producers.

    Event time is the time of arrival less `lag_seconds`, that of the last row of what comes together; for a
    trace, `events` may give it for each of its times, and `late` by how much rows were seen there after they
    had arrived, where a window comes after.
    """

    queue: str
    arrivals: Arrivals
    producer: str = "source"
    lag_seconds: float = 0.0
    events: tuple[float, ...] = ()
    late: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plant:
    """Stages, each after those that it reads, loops aside, and what comes in.

    `graphs` are the pipelines they were made from: plans of batch sizes are made for those.
    """

    stages: tuple[StageSetup, ...]
    inflows: tuple[Inflow, ...]
    graphs: tuple[StageGraph, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) < len(names):
            raise SimulationError(
                f"a simulation must have stages of different names, got {len(names)} stages with "
                f"{len(set(names))} names: none could be told of"
            )
        fed = {stage.output for stage in self.stages} | {inflow.queue for inflow in self.inflows}
        read = {queue for stage in self.stages for queue in stage.inputs}
        for stage in self.stages:
            if not fed.intersection(stage.inputs):
                raise SimulationError(
                    f"stage {stage.name!r} must read a queue that rows come to, got "
                    f"{', '.join(stage.inputs) or 'none'}: it would never run"
                )
        if lost := [inflow.queue for inflow in self.inflows if inflow.queue not in read]:
            raise SimulationError(
                f"rows must come to a queue that a stage reads, got {lost[0]!r}: nobody does"
            )

    @cached_property
    def readers(self) -> Mapping[str, tuple[StageSetup, ...]]:
        """The stages that read each queue."""
        found: dict[str, list[StageSetup]] = {}
        for stage in self.stages:
            for queue in stage.inputs:
                found.setdefault(queue, []).append(stage)
        return {queue: tuple(stages) for queue, stages in found.items()}

    def below(self, stage: StageSetup) -> tuple[StageSetup, ...]:
        """The stages that read what this one writes."""
        return self.readers.get(stage.output, ()) if stage.output is not None else ()

    def producers(self, stage: StageSetup) -> int:
        """Whom a stage hears from: inflows, and stages before it; those of a loop are not waited for."""
        place = self._places[stage.name]
        return sum(
            self._inflow_counts.get(queue, 0) + sum(writer < place for writer in self._writers.get(queue, ()))
            for queue in stage.inputs
        )

    @cached_property
    def _places(self) -> dict[str, int]:
        return {stage.name: place for place, stage in enumerate(self.stages)}

    @cached_property
    def _writers(self) -> dict[str, list[int]]:
        """By queue, the places of the stages that write to it."""
        found: dict[str, list[int]] = {}
        for place, stage in enumerate(self.stages):
            if stage.output is not None:
                found.setdefault(stage.output, []).append(place)
        return found

    @cached_property
    def _inflow_counts(self) -> dict[str, int]:
        return Counter(inflow.queue for inflow in self.inflows)

    @cached_property
    def outside_rates(self) -> Mapping[str, float]:
        """Rows per second that come to each stage from outside."""
        outside = dict.fromkeys((stage.name for stage in self.stages), 0.0)
        for inflow in self.inflows:
            for stage in self.readers[inflow.queue]:
                outside[stage.name] += inflow.arrivals.rows_per_second
        return outside

    @cached_property
    def rates(self) -> Mapping[str, float]:
        """Rows per second at each stage, through loops; refuses a loop in which rows become no fewer."""
        shares = {
            stage.name: {each.name: stage.selectivity for each in self.below(stage)} for stage in self.stages
        }
        return rates_through(self.outside_rates, shares)

    @cached_property
    def steepness(self) -> Mapping[str, float | None]:
        """By stage, for the policy min-memory; rows that go round a loop count as gone at its end."""
        places = self._places
        readers = {
            stage.name: [each.name for each in self.below(stage) if places[each.name] > places[stage.name]]
            for stage in self.stages
        }
        return steepness(readers, {stage.name: stage.profile(stage.slots) for stage in self.stages})

    @cached_property
    def timed_queues(self) -> frozenset[str]:
        """Queues whose rows come to a window sooner or later: there event time matters."""
        timed = {queue for stage in self.stages if stage.window is not None for queue in stage.inputs}
        while more := {
            queue
            for stage in self.stages
            if stage.output in timed
            for queue in stage.inputs
            if queue not in timed
        }:
            timed |= more
        return frozenset(timed)

    def scaled(self, factor: float) -> Plant:
        """The same with `factor` times the rows from outside."""
        inflows = tuple(replace(each, arrivals=each.arrivals.scaled(factor)) for each in self.inflows)
        return replace(self, inflows=inflows)
