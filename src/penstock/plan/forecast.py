"""What slots would lead to, before anyone has them: latency at every stage and sink, and what helps next.

With slots enough each stage has some of its own, placed by AssignProcessors over bulk service or another
model. With fewer, or where more targets are met so or rows stay less long, stages whose rows one slot can do
share slots in time, by the shared-pool model, and only wider ones have their own. Times are means; a row at a
sink has passed every stage on the slowest way to it, those of a loop as often as rows go round on average.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from penstock.errors import PenstockError
from penstock.model.network import Network, NetworkStage
from penstock.model.shared_pool import PoolMember, SharedPool
from penstock.plan.forecast_models import BY_ROWS, MODELS, POOL
from penstock.plan.rounds import loop_of, seconds_until
from penstock.plan.slot_errors import SlotError
from penstock.plan.slots import MOST_SLOTS, assign_processors
from penstock.plan.workflow import Workflow

THE_POOL = "the pool"


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
    model: str = "bulk"
    """That tells it."""
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
    shared: int
    """Slots on which stages take turns, rather than have slots of their own."""
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
    own = sum(_own_slots(workflow).values())
    shared = _sharing(workflow)
    if slots < own:
        _check_slots(shared, slots)
        return _placed(shared, slots)
    # Small stages that keep a slot each may have what large ones lack; a model that was asked for counts.
    usual = all(stage.model == "bulk" for stage in workflow.stages)
    tried = [workflow, shared] if usual and shared != workflow else [workflow]
    return min(
        (_placed(each, slots) for each in tried), key=lambda each: (not each.met, each.sojourn_seconds)
    )


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
    stages = (
        replace(
            each,
            row_seconds=each.slots * each.row_seconds,
            seen_row_seconds=each.slots * each.seen_row_seconds,
            slots=1,
        )
        for each in workflow.stages
    )
    return replace(workflow, stages=tuple(stages))


def _own_slots(workflow: Workflow) -> dict[str, int]:
    """The fewest slots of each stage that shares none."""
    pairs = zip(workflow.stages, workflow.rates, strict=True)
    return {stage.name: int(rate * stage.row_seconds) + 1 for stage, rate in pairs if stage.model != POOL}


def _sharing(workflow: Workflow) -> Workflow:
    """The stages whose rows one slot can do share slots with each other."""
    pairs = zip(workflow.stages, workflow.rates, strict=True)
    stages = (
        replace(stage, model=POOL) if rate * stage.row_seconds < 1.0 else stage for stage, rate in pairs
    )
    return replace(workflow, stages=tuple(stages))


def _pool(workflow: Workflow) -> SharedPool | None:
    """Of the stages that share slots; None where none does."""
    weights = _weights(workflow)
    members = tuple(
        PoolMember(stage.name, rate, stage.fixed_seconds, stage.row_seconds, weights[stage.name])
        for stage, rate in zip(workflow.stages, workflow.rates, strict=True)
        if stage.model == POOL
    )
    return SharedPool(members) if members else None


def _check_slots(workflow: Workflow, slots: int) -> None:
    """Refuses fewer slots than the rows keep busy."""
    pairs = zip(workflow.stages, workflow.rates, strict=True)
    busy = [rate * stage.row_seconds for stage, rate in pairs]

    def needed(share: float) -> int:
        """Of the load: stages that one slot can do share theirs."""
        wide = [share * each for each in busy if share * each >= 1.0]
        narrow = [share * each for each in busy if share * each < 1.0]
        return sum(int(each) + 1 for each in wide) + (int(sum(narrow)) + 1 if narrow else 0)

    if slots < needed(1.0):
        held = next((share for share in range(99, 0, -1) if needed(share / 100) <= slots), 0)
        raise SlotError(
            f"the stages must have at least {needed(1.0)} slots, got {slots}, of which their rows keep "
            f"{sum(busy):.3g} busy: queues would grow without end; needed: more slots"
            + (f", or {held}% of the load" if held else "")
        )


def _placed(workflow: Workflow, slots: int) -> Forecast:
    """The pool, where there is one, counts as one stage beside those with slots of their own."""
    weights, pool = _weights(workflow), _pool(workflow)
    own = tuple(
        NetworkStage(stage.name, MODELS[stage.model](stage, rate), weights[stage.name])
        for stage, rate in zip(workflow.stages, workflow.rates, strict=True)
        if stage.model != POOL
    )
    plan = assign_processors(Network((*([NetworkStage(THE_POOL, pool)] if pool else []), *own)), slots)
    seconds, given, bottleneck = dict(plan.stage_seconds), dict(plan.slots), plan.bottleneck
    shared = given.get(THE_POOL, 0)
    if pool is not None:
        for member in pool.members:
            seconds[member.name], given[member.name] = pool.stage_seconds(member.name, shared), 1
        if bottleneck == THE_POOL:
            bottleneck = max(pool.members, key=lambda each: each.work).name
    return Forecast(
        slots,
        shared,
        _stages(workflow, given, seconds),
        _sinks(workflow, seconds),
        plan.sojourn_seconds,
        plan.helps_most,
        plan.gain_seconds,
        bottleneck,
        1.0 / plan.bottleneck_utilisation if plan.bottleneck_utilisation else inf,
    )


def _weights(workflow: Workflow) -> dict[str, float]:
    """What an input pays of each stage: rows of one input share a turn, but go round a loop one by one."""
    outside = sum(stage.rows_per_second for stage in workflow.stages)
    singly = {each.name for stage in workflow.stages for each in loop_of(workflow, stage)}
    singly |= {stage.name for stage in workflow.stages if stage.model in BY_ROWS}
    return {
        stage.name: rate / outside if stage.name in singly else min(rate / outside, 1.0)
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
            stage.model,
            unseen=rate * seconds[stage.name] > stage.most_rows,
        )
        for stage, rate in zip(workflow.stages, workflow.rates, strict=True)
    )


def _sinks(workflow: Workflow, seconds: Mapping[str, float]) -> tuple[SinkForecast, ...]:
    until = seconds_until(workflow, seconds)
    return tuple(
        SinkForecast(each.name, until[each.stage], each.target_seconds) for each in workflow.products
    )
