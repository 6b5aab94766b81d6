"""A stage: operators that run as one Spark query or job, between queues. The graph of all of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.pipeline.nodes import Operator, Sink, Source, Window
from penstock.pipeline.sinks import Kafka

DEAD = ".dead"
"""How the names of queues for dead letters end."""


@dataclass(frozen=True, slots=True)
class Feed:
    """One input of a stage, and which argument of which operator takes it; operator None: the sink.

    `loop` names the loop by which the rows come round, where they do.
    """

    input: str
    operator: str | None
    position: int = 0
    loop: str | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """The unit of scheduling. It ends either in a queue (`output`) or in a `sink`, never in both.

    `inputs` are names of queues or, where `native` is set, the one name of the source Spark reads itself.
    `operators` stand in an order in which they can be applied. `latency_seconds` is the least target
    of the sinks its rows may reach, `depth` the number of stages its rows still have before them.
    """

    name: str
    pipeline: str
    inputs: tuple[str, ...]
    feeds: tuple[Feed, ...]
    operators: tuple[Operator, ...]
    native: Source | None
    output: str | None
    sink: Sink | None
    parallelism: int
    latency_seconds: float | None = None
    depth: int = 0

    @property
    def stateful(self) -> bool:
        """Whether an operator is declared to remember rows between turns."""
        return any(operator.stateful for operator in self.operators)

    @property
    def block_rows(self) -> int:
        """Rows without which its first operator makes nothing."""
        return self.operators[0].block if self.operators else 0

    @property
    def turn_kind(self) -> Literal["direct", "held"]:
        """The kind of turn its declared operators ask for."""
        return "held" if self.stateful else "direct"

    @property
    def at_turn(self) -> Operator | None:
        """The operator at its end that is called at every turn, if there is one."""
        return next((each for each in self.operators if each.turn_schema is not None), None)

    @property
    def windows(self) -> Mapping[str, Window]:
        """Settings of the windows in it, by operator; at most one, as a stage has one state at most."""
        return {each.name: each.window for each in self.operators if each.window is not None}

    @property
    def dead_letters(self) -> Mapping[str, str]:
        """Queues for bad and late rows, by the operator that puts them aside."""
        return {
            each.name: f"{self.pipeline}.{each.name}{DEAD}"
            for each in self.operators
            if each.keeps_dead_letters
        }


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue between stages. Without producers, it is filled by `source` or holds what came before."""

    name: str
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    source: Source | None = None
    loop_schema: str | None = None
    dead_letters: bool = False
    topic: Kafka | None = None
    """Where its rows lie, if not in a spool."""


@dataclass(frozen=True)
class StageGraph:
    """The stages of one pipeline, each after those it reads from, the return of a loop aside."""

    pipeline: str
    version: str
    stages: tuple[Stage, ...]
    queues: Mapping[str, Queue]

    def stage(self, name: str) -> Stage:
        """The stage of that name; KeyError if there is none."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)

    def producers_of(self, queue: str) -> tuple[Stage, ...]:
        """The stages that write to the queue; none where a source fills it."""
        return tuple(map(self.stage, self.queues[queue].producers))

    def consumers_of(self, queue: str) -> tuple[Stage, ...]:
        """The stages that read the queue, each with a cursor of its own."""
        return tuple(map(self.stage, self.queues[queue].consumers))

    def below(self, stage: Stage, *, loops: bool = True) -> tuple[Stage, ...]:
        """The stages that read what this one writes; without `loops`, only those further down."""
        if stage.output is None:
            return ()
        return tuple(
            each for each in self.consumers_of(stage.output) if loops or _reads_on(each, stage.output)
        )


def guarantee_at(graph: StageGraph, end: Stage) -> str:
    """How often a row reaches the sink of a stage: no better than a topic on its way lets it."""
    assert end.sink is not None
    seen, ahead = {end.name}, [end]
    while ahead:
        for queue in (graph.queues[name] for name in ahead.pop().inputs if name in graph.queues):
            if queue.topic is not None:
                return queue.topic.guarantee
            ahead += [stage for stage in graph.producers_of(queue.name) if stage.name not in seen]
            seen.update(queue.producers)
    return end.sink.spec.guarantee


def first_stages(graph: StageGraph) -> frozenset[str]:
    """The first operations of a pipeline: for each source one stage that reads it, as rows count once."""
    first = {stage.name for stage in graph.stages if stage.native is not None}
    for queue in graph.queues.values():
        if queue.source is not None and queue.consumers and first.isdisjoint(queue.consumers):
            first.add(queue.consumers[0])
    return frozenset(first)


def _reads_on(stage: Stage, queue: str) -> bool:
    return any(feed.input == queue and feed.loop is None for feed in stage.feeds)
