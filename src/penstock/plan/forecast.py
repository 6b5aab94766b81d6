"""What slots would lead to, before anyone has them: latency at every stage and sink, and what helps next.

With fewer slots than stages they are shared in time, by the shared-pool model; else each stage has slots of
its own, placed by AssignProcessors over bulk service. Times are means; a row at a sink has passed every stage
on the slowest way to it, those of a loop as often as rows go round on average.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf

from penstock.errors import PenstockError
from penstock.model.bulk import BulkService
from penstock.model.network import Network, NetworkStage
from penstock.model.shared_pool import PoolMember, SharedPool
from penstock.plan.rounds import loop_of, seconds_until
from penstock.plan.slot_errors import SlotError
from penstock.plan.slots import MOST_SLOTS, assign_processors
from penstock.plan.workflow import PlanStage, Workflow


@dataclass(frozen=True)
class StageForecast:
    """One stage: its rate, its slots, and how long a row stays there."""

    name: str
    rows_per_second: float
    slots: int
    seconds: float
    """E[T_i]."""
    busy_slots: float
    """Slots that its rows keep busy: lambda c1."""
    unseen: bool = False
    """Whether its turns would have many more rows than any that was measured."""


@dataclass(frozen=True)
class SinkForecast:
    """What leaves at a sink, after how long, and within what it should."""

    name: str
    seconds: float
    target_seconds: float

    @property
    def met(self) -> bool:
        return self.seconds <= self.target_seconds


@dataclass(frozen=True)
class Forecast:
    """What `slots` slots lead to."""

    slots: int
    shared: bool
    """Whether the stages take turns on the slots, rather than have slots of their own."""
    stages: tuple[StageForecast, ...]
    sinks: tuple[SinkForecast, ...]
    sojourn_seconds: float
    """E[T] of an input, over all that it leads to."""
    helps: str
    """Where one more slot would shorten E[T] most."""
    gain_seconds: float
    bottleneck: str
    """The stage that would be the first not to keep up if more came."""
    bottleneck_rate: float
    """By how much all rates could grow before it does not."""

    @property
    def met(self) -> bool:
        return all(sink.met for sink in self.sinks)


def forecast(workflow: Workflow, slots: int) -> Forecast:
    """The best that is known for so many slots; refuses too few, with how many it takes."""
    _check_rates(workflow)
    if slots < 1:
        raise PenstockError(f"a plan must have at least 1 slot, got {slots}: no turn could ever run")
    workflow = _on_one_slot(workflow)
    if slots < _own_slots_from(workflow):
        return _shared(workflow, slots)
    return _own(workflow, slots)


def fewest_slots(workflow: Workflow, most_slots: int = MOST_SLOTS) -> Forecast:
    """With as few slots as meet the target of every sink; refuses targets that no number meets."""
    low, high = 0, 1
    while not _meets(workflow, high):
        if high >= most_slots:
            raise SlotError(_out_of_reach(workflow, most_slots))
        low, high = high, min(2 * high, most_slots)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _meets(workflow, middle) else (middle, high)
    return forecast(workflow, high)


def _meets(workflow: Workflow, slots: int) -> bool:
    try:
        return forecast(workflow, slots).met
    except SlotError:
        return False


def _out_of_reach(workflow: Workflow, most_slots: int) -> str:
    best = forecast(workflow, most_slots)
    late = max((sink for sink in best.sinks if not sink.met), key=lambda sink: sink.seconds)
    return (
        f"the target of sink {late.name!r} must be one that some number of slots meets, got "
        f"{late.target_seconds:.4g} s where even {most_slots:,} slots lead to {late.seconds:.4g} s: its rows "
        f"would be late; needed: a target of {late.seconds:.4g} s, fewer stages on its way (fuse them), "
        "or less work for a row"
    )


def _check_rates(workflow: Workflow) -> None:
    if not workflow.stages:
        raise PenstockError("a forecast must have at least 1 stage whose cost is known, got none")
    if not sum(stage.rows_per_second for stage in workflow.stages) > 0.0:
        raise PenstockError("a forecast must have rows that come from outside, got none: there is no load")


def _on_one_slot(workflow: Workflow) -> Workflow:
    """With the costs of rows on one slot: they were learned from turns on as many as a stage has now."""
    stages = (replace(each, row_seconds=each.slots * each.row_seconds, slots=1) for each in workflow.stages)
    return replace(workflow, stages=tuple(stages))


def _least_slots(stage: PlanStage, rate: float) -> int:
    return int(rate * stage.row_seconds) + 1


def _own_slots_from(workflow: Workflow) -> int:
    """From how many slots on each stage has some of its own."""
    return sum(map(_least_slots, workflow.stages, workflow.rates))


def _shared(workflow: Workflow, slots: int) -> Forecast:
    pairs = tuple(zip(workflow.stages, workflow.rates, strict=True))
    busy = sum(rate * stage.row_seconds for stage, rate in pairs)
    wide = [stage.name for stage, rate in pairs if rate * stage.row_seconds >= 1.0]
    needed = _own_slots_from(workflow) if wide else ceil(busy + 1e-9)
    if busy >= slots or wide:
        raise SlotError(
            f"the stages must have at least {needed} slots, got {slots}, of which their rows keep "
            f"{busy:.3g} busy: queues would grow without end; needed: more slots, or "
            f"{min(slots / busy, 1.0):.0%} of the load"
        )
    weights = _weights(workflow)
    members = tuple(
        PoolMember(stage.name, rate, stage.fixed_seconds, stage.row_seconds, weights[stage.name])
        for stage, rate in pairs
    )
    pool = SharedPool(members)
    seconds = {stage.name: pool.stage_seconds(stage.name, slots) for stage in workflow.stages}
    most = max(pairs, key=lambda pair: pair[1] * pair[0].row_seconds)[0].name
    return Forecast(
        slots,
        True,
        _stages(workflow, dict.fromkeys(seconds, 1), seconds),
        _sinks(workflow, seconds),
        pool.sojourn_seconds(slots),
        "the pool",
        pool.sojourn_seconds(slots) - pool.sojourn_seconds(slots + 1),
        most,
        slots / busy if busy else inf,
    )


def _own(workflow: Workflow, slots: int) -> Forecast:
    weights = _weights(workflow)
    network = Network(
        tuple(
            NetworkStage(
                stage.name, BulkService(rate, stage.fixed_seconds, stage.row_seconds), weights[stage.name]
            )
            for stage, rate in zip(workflow.stages, workflow.rates, strict=True)
        )
    )
    plan = assign_processors(network, slots)
    return Forecast(
        slots,
        False,
        _stages(workflow, plan.slots, plan.stage_seconds),
        _sinks(workflow, plan.stage_seconds),
        plan.sojourn_seconds,
        plan.helps_most,
        plan.gain_seconds,
        plan.bottleneck,
        1.0 / plan.bottleneck_utilisation if plan.bottleneck_utilisation else inf,
    )


def _weights(workflow: Workflow) -> dict[str, float]:
    """Turns of a stage for an input: rows of one input share a turn, but go round a loop one by one."""
    outside = sum(stage.rows_per_second for stage in workflow.stages)
    looping = {each.name for stage in workflow.stages for each in loop_of(workflow, stage)}
    return {
        stage.name: rate / outside if stage.name in looping else min(rate / outside, 1.0)
        for stage, rate in zip(workflow.stages, workflow.rates, strict=True)
    }


def _stages(
    workflow: Workflow, slots: Mapping[str, int], seconds: Mapping[str, float]
) -> tuple[StageForecast, ...]:
    return tuple(
        StageForecast(
            stage.name,
            rate,
            slots[stage.name],
            seconds[stage.name],
            rate * stage.row_seconds,
            unseen=rate * seconds[stage.name] > stage.most_rows,
        )
        for stage, rate in zip(workflow.stages, workflow.rates, strict=True)
    )


def _sinks(workflow: Workflow, seconds: Mapping[str, float]) -> tuple[SinkForecast, ...]:
    until = seconds_until(workflow, seconds)
    return tuple(
        SinkForecast(each.name, until[each.stage], each.target_seconds) for each in workflow.products
    )
