"""The highest rate that a topology should hold, from what its turns cost at lower rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

from penstock.bench.riot.steps import LATENCY_LIMIT_SECONDS, Curve, Step
from penstock.model.shared_pool import PoolMember, SharedPool
from penstock.model.stage_model import ModelError
from penstock.stages.stage import StageGraph

# Only steps up to this share of the highest rate are learned from: what is predicted is not among them.
LEARNED_SHARE = 0.6
ROUNDS = 40


def path_shares(graph: StageGraph, stages: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The share of published rows whose way leads through each stage, by the rows that stages gave.

    Rows that are stored count as well. Stages are in the order of the graph, each after its producers.
    """
    ends = [stage.name for stage in graph.stages if stage.output is None]
    came = sum(stages[name]["rows_in"] for name in ends)
    shares = {name: stages[name]["rows_in"] / came if came else 0.0 for name in ends}
    for stage in reversed(graph.stages):
        if stage.output is not None:
            below = graph.below(stage, loops=False)
            shares[stage.name] = sum(
                shares[each.name] * _part(graph, stages, stage.name, each.name) for each in below
            )
    return shares


def _part(graph: StageGraph, stages: Mapping[str, Mapping[str, float]], above: str, below: str) -> float:
    """The part of a stage's input that comes from one above it."""
    queues = graph.stage(below).inputs
    given = {name: stages[name]["rows_out"] for queue in queues for name in graph.queues[queue].producers}
    total = sum(given.values())
    return given[above] / total if total else 0.0


def predicted_rate(curve: Curve, slots: int) -> float | None:
    """The highest rate with a mean latency under one second, by equation 4 and what turns cost.

    A turn of n rows costs c0 + c1 n at each stage, which is learned from steps well below the highest
    rate; the shared pool tells how large turns get and how long rows then take. None where fewer than
    two rates were tried that are low enough.
    """
    highest = curve.highest
    if highest is None:
        return None
    known = [step for step in curve.steps if step.held and step.rate <= LEARNED_SHARE * highest.rate]
    known.sort(key=attrgetter("rate"))
    if len({step.rate for step in known}) < 2:
        return None
    costs = {name: _cost([step.stages[name] for step in known]) for name in known[-1].stages}

    def too_late(rate: float) -> bool:
        try:
            pool = SharedPool(tuple(_member(known[-1], name, costs[name], rate) for name in costs))
        except ModelError:  # one stage alone would need more than a slot
            return True
        return pool.sojourn_seconds(slots) >= LATENCY_LIMIT_SECONDS

    return _last_that_is_not(too_late, known[0].rate)


def _member(step: Step, name: str, cost: tuple[float, float], rate: float) -> PoolMember:
    stage = step.stages[name]
    rows_per_second = rate * stage["arrival"] / step.rate
    return PoolMember(name, rows_per_second, *cost, weight=stage["path_share"])


def _cost(seen: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """c0 and c1 of a stage: the line through the mean turns of several steps, each as heavy as its turns."""
    points = [
        (each["rows_in"] / each["turns"], each["slot_seconds"] / each["turns"], each["turns"])
        for each in seen
        if each["turns"]
    ]
    weight = sum(turns for *_, turns in points)
    if not weight:
        return 0.0, 0.0
    size = sum(rows * turns for rows, _, turns in points) / weight
    seconds = sum(took * turns for _, took, turns in points) / weight
    spread = sum(turns * (rows - size) ** 2 for rows, _, turns in points)
    common = sum(turns * (rows - size) * (took - seconds) for rows, took, turns in points)
    slope = min(max(common / spread if spread else 0.0, 0.0), seconds / size if size else 0.0)
    return seconds - slope * size, slope


def _last_that_is_not(too_late: Callable[[float], bool], start: float) -> float | None:
    """Between rates that double from `start`, halved until it is found; None if all are too late."""
    if too_late(start):
        return None
    low, high = start, 2 * start
    while not too_late(high):
        low, high = high, 2 * high
        if high > 1e9 * start:
            return None
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if too_late(middle) else (middle, high)
    return low
