"""From operators to stages: which operators share a turn, and where a queue stands between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.pipeline.graph import Graph
from penstock.pipeline.nodes import Loop, Operator, Sink, Source
from penstock.pipeline.pipeline import Pipeline
from penstock.stages.stage import Feed, Queue, Stage, StageGraph
from penstock.stages.targets import least_targets


def cut(pipeline: Pipeline) -> StageGraph:
    """The stages of a pipeline; raises PipelineError where it has mistakes.

    Chains fuse. A queue stands behind a source Spark does not read itself, at a loop, at `queue()`, where
    several read one stream, at `fuse=False`, where parallelism changes, behind an operator with dead letters,
    before one with a block,
    between two operators with state, and where a union or join has a native source beside another input.
    An operator that is called at every turn ends its stage, which has neither state nor a native source;
    nor has that of a sink that may be away. A source read by turns goes with these, and not with state.
    A topic that rows go through is written as such a sink is, and read as such a source is.
    """
    pipeline.check()
    cutter = _Cutter(pipeline, pipeline.graph())
    stages = [cutter.stage(name) for name in cutter.order if cutter.ends_stage(name)]
    graph = StageGraph(pipeline.name, pipeline.version, tuple(stages), cutter.queues(stages))
    targets, depths = least_targets(graph), _depths(graph)
    placed = [replace(s, latency_seconds=targets[s.name], depth=depths[s.name]) for s in stages]
    return replace(graph, stages=tuple(placed))


@dataclass(frozen=True, slots=True)
class _Chain:
    """What the part of a stage above a node holds already."""

    native: bool
    stateful: bool = False
    by_turns: bool = False

    @property
    def held(self) -> bool:
        """Whether its turns are batches of a streaming query."""
        return self.stateful or (self.native and not self.by_turns)


class _Cutter:
    def __init__(self, pipeline: Pipeline, graph: Graph) -> None:
        self.pipeline = pipeline
        self.graph = graph
        self.nodes = graph.nodes
        self.order = graph.order()
        self.queued = {name for name in self.order if self._always_queued(name)}
        self._cut_between_operators()

    def ends_stage(self, name: str) -> bool:
        """A stage ends at a sink, or where a queue takes what an operator or a native source gives."""
        node = self.nodes[name]
        return isinstance(node, Sink) or (
            name in self.queued
            and (isinstance(node, Operator) or (isinstance(node, Source) and node.spec.native))
        )

    def stage(self, end: str) -> Stage:
        """The stage that ends at this node."""
        last = self.nodes[end]
        members = self._members(end)
        operators = tuple(node for node in members if isinstance(node, Operator))
        feeds = tuple(self._feeds(operators, last))
        native = next((node for node in members if isinstance(node, Source)), None)
        return Stage(
            name=self._full(operators[-1].name if operators else end),
            pipeline=self.pipeline.name,
            inputs=tuple(dict.fromkeys(feed.input for feed in feeds)),
            feeds=feeds,
            operators=operators,
            native=native,
            output=None if isinstance(last, Sink) else self._full(end),
            sink=last if isinstance(last, Sink) else None,
            parallelism=operators[-1].parallelism if operators else 1,
        )

    def queues(self, stages: list[Stage]) -> dict[str, Queue]:
        """Every queue by name: those between stages, in order, then those for dead letters."""
        found: dict[str, Queue] = {}
        for name in self.order:
            if name in self.queued and not isinstance(self.nodes[name], Loop):
                found[self._full(name)] = self._queue(name, stages)
        for stage in stages:
            for queue in stage.dead_letters.values():
                found[queue] = Queue(queue, producers=(stage.name,), dead_letters=True)
        return found

    def _queue(self, name: str, stages: list[Stage]) -> Queue:
        node, full = self.nodes[name], self._full(name)
        looped = [self.nodes[loop] for loop, producer in self.graph.feeds.items() if producer == name]
        return Queue(
            full,
            producers=tuple(stage.name for stage in stages if stage.output == full),
            consumers=tuple(stage.name for stage in stages if stage.native is None and full in stage.inputs),
            source=node if isinstance(node, Source) and not node.spec.native else None,
            loop_schema=next((loop.schema for loop in looped if isinstance(loop, Loop)), None),
            topic=node.topic if isinstance(node, Operator) else None,
        )

    def _always_queued(self, name: str) -> bool:
        node = self.nodes[name]
        if isinstance(node, Sink):
            return False
        return (
            isinstance(node, Loop)
            or (isinstance(node, Source) and not node.spec.native)
            or (isinstance(node, Operator) and (node.dead_letters or node.topic is not None))
            or name in self.pipeline.cuts
            or name in self.graph.feeds.values()
            or len(self.graph.consumers[name]) > 1
        )

    def _cut_between_operators(self) -> None:
        chains = {name: _chain_of(self.nodes[name]) for name in self.order}
        for name in self.order:
            node = self.nodes[name]
            if isinstance(node, Sink) and getattr(node.spec, "may_be_away", False):
                chain = chains[node.input]
                self.queued.update({node.input} if chain.held else ())
            if not isinstance(node, Operator):
                continue
            self.queued.update(each for each in node.inputs if not self._alike(each, node))
            if node.topic is not None:
                self.queued.update(each for each in node.inputs if chains[each].held)
            if node.dead_letters:
                # A stage has one queue for dead letters, and a window needs it for its late rows.
                self.queued.update(each for each in self._fused(node) if chains[each].stateful)
            self.queued.update(_crowded(node, {each: chains[each] for each in self._fused(node)}))
            above = [chains[each] for each in self._fused(node)]
            chains[name] = _Chain(
                native=any(chain.native for chain in above),
                stateful=node.stateful or any(chain.stateful for chain in above),
                by_turns=any(chain.by_turns for chain in above),
            )
            if node.kind == "from_topic":
                chains[name] = _Chain(native=True, by_turns=True)

    def _fused(self, node: Operator | Sink) -> list[str]:
        return [name for name in dict.fromkeys(node.inputs) if name not in self.queued]

    def _alike(self, above: str, node: Operator) -> bool:
        """Whether the settings of two neighbours let them share a turn. A source goes with any operator, and
        so does an end of a topic."""
        other = self.nodes[above]
        if not isinstance(other, Operator) or other.kind == "from_topic":
            return True
        if other.turn_schema is not None or node.block:
            # The rows of a block are counted in the queue before it.
            return False
        if node.topic is not None:
            return True
        return self.pipeline.fuse and other.fuse and node.fuse and other.parallelism == node.parallelism

    def _members(self, end: str) -> list[Source | Loop | Operator | Sink]:
        found, ahead = {end}, [self.nodes[end]]
        while ahead:
            node = ahead.pop()
            fused = self._fused(node) if isinstance(node, (Operator, Sink)) else []
            found.update(fused)
            ahead.extend(self.nodes[name] for name in fused)
        return [self.nodes[name] for name in self.order if name in found]

    def _feeds(
        self, operators: tuple[Operator, ...], last: Source | Loop | Operator | Sink
    ) -> Iterable[Feed]:
        inside = {operator.name for operator in operators}
        for operator in operators:
            for position, name in enumerate(operator.inputs):
                if name not in inside:
                    yield self._feed(name, operator.name, position)
        if not operators:
            # Nothing but a native source and its queue, or a sink and what it reads.
            yield self._feed(last.input if isinstance(last, Sink) else last.name, None, 0)

    def _feed(self, name: str, operator: str | None, position: int) -> Feed:
        if isinstance(self.nodes[name], Loop):
            return Feed(self._full(self.graph.feeds[name]), operator, position, loop=name)
        return Feed(self._full(name), operator, position)

    def _full(self, name: str) -> str:
        return f"{self.pipeline.name}.{name}"


def _chain_of(node: Source | Loop | Operator | Sink) -> _Chain:
    by_turns = isinstance(node, Source) and getattr(node.spec, "by_turns", False)
    return _Chain(native=isinstance(node, Source), by_turns=by_turns)


def _crowded(node: Operator, chains: dict[str, _Chain]) -> set[str]:
    """Of the chains that could fuse with `node`, those that must not.

    One stage reads either one native source or queues. And it has one state: Spark forbids a second
    watermark below the first, and a window can close in one turn only where there is one watermark.
    What is called at every turn runs in direct turns, which have no state and read queues.
    """
    crowded: set[str] = set()
    at_turn = node.turn_schema is not None
    if len(set(node.inputs)) > 1:
        crowded.update(name for name, chain in chains.items() if chain.native)
    if at_turn:
        crowded.update(name for name, chain in chains.items() if chain.held)
    if node.stateful:
        crowded.update(name for name, chain in chains.items() if chain.by_turns)
    stateful = [name for name, chain in chains.items() if chain.stateful]
    if at_turn or node.stateful or len(stateful) > 1:
        crowded.update(stateful)
    return crowded


def _depths(graph: StageGraph) -> dict[str, int]:
    """Stages ahead on the longest way down; by way of a loop only where no other way leads to a sink."""
    depths: dict[str, int] = {}
    # From the sinks upwards. What leaves by a loop alone is known a round later, when its return is.
    while len(depths) < len(graph.stages):
        for stage in reversed(graph.stages):
            ahead = [depths[each.name] for each in graph.below(stage) if each.name in depths]
            if stage.sink is not None or ahead:
                depths.setdefault(stage.name, 1 + max(ahead, default=-1))
    return depths
