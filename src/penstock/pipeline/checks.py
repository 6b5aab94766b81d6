"""What can only be known once all is declared: each check gives the mistakes it finds."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import TypedDict, TypeVar

from penstock.pipeline.graph import Graph
from penstock.pipeline.nodes import Loop, Node, Operator, Sink, Source, kind_of

T = TypeVar("T")


class FloorTable(TypedDict):
    """The least seconds a turn takes: `direct` without state, `held` with state."""

    direct: float
    held: float


def find_mistakes(graph: Graph, pipeline: str) -> list[str]:
    """All mistakes, in the order of the checks and, in each, of declaration."""
    checks = (
        _empty_ends,
        _unknown_names,
        _reading_sinks,
        _circles,
        _loops,
        _unreachable,
        _leading_nowhere,
        _endless_state,
    )
    return [mistake for check in checks for mistake in check(graph)]


def _empty_ends(graph: Graph) -> Iterator[str]:
    if not _of(graph, Source):
        yield "it has no source: no row would ever come in"
    if not _of(graph, Sink):
        yield "it has no sink: no row would ever leave it"


def _unknown_names(graph: Graph) -> Iterator[str]:
    for node in graph.nodes.values():
        for name in node.inputs:
            if name not in graph.nodes:
                yield f"{_said(node)}: it reads {name!r}, which is not declared{_guess(name, graph.nodes)}"
    loops = [loop.name for loop in _of(graph, Loop)]
    for loop, producer in graph.feeds.items():
        feeding = f"{_said(graph.nodes[producer])}: it feeds {loop!r}"
        if loop not in graph.nodes:
            yield f"{feeding}, which is not declared{_guess(loop, loops)}"
        elif loop not in loops:
            yield f"{feeding}, which is of kind {kind_of(graph.nodes[loop])!r}: declare a loop() instead"


def _reading_sinks(graph: Graph) -> Iterator[str]:
    for node in graph.nodes.values():
        for name in node.inputs:
            if isinstance(graph.nodes.get(name), Sink):
                yield f"{_said(node)}: it reads {name!r}, which is a sink: rows end there"


def _circles(graph: Graph) -> Iterator[str]:
    if circle := graph.circle():
        yield f"{_listed(circle)} read one another: declare a loop(), union it in, and feed() it"


def _loops(graph: Graph) -> Iterator[str]:
    for loop in _of(graph, Loop):
        producer = graph.feeds.get(loop.name)
        if producer is None:
            yield f"{_said(loop)}: it is never fed: call feed() on the stream whose rows come back"
        elif producer not in graph.below([loop.name]):
            yield f"{_said(loop)}: it is fed by {producer!r}, which is not below it: read {producer!r} itself"


def _unreachable(graph: Graph) -> Iterator[str]:
    # Nodes that read an unknown name have their own mistake; what is below them is not blamed again.
    begins = [n.name for n in graph.nodes.values() if isinstance(n, Source) or _reads_unknown(n, graph)]
    reached = graph.below(begins)
    for node in graph.nodes.values():
        if begins and isinstance(node, (Operator, Sink)) and node.name not in reached:
            yield f"{_said(node)}: no source leads to it: no row would ever reach it"


def _leading_nowhere(graph: Graph) -> Iterator[str]:
    sinks = [sink.name for sink in _of(graph, Sink)]
    leading = graph.above(sinks)
    for node in graph.nodes.values():
        if sinks and node.name not in leading:
            yield f"{_said(node)}: it leads to no sink: its rows would be lost"


def _endless_state(graph: Graph) -> Iterator[str]:
    for node in _of(graph, Operator):
        bounded = node.watermark is not None or node.forgets
        if node.stateful and not bounded and graph.looping(node.name):
            yield (
                f"{_said(node)}: state inside a loop must have a watermark, got none: it would grow for ever "
                "(set one in its function, and name its column with watermark=; or say forgets=True "
                "where it forgets by itself)"
            )


def _of(graph: Graph, kind: type[T]) -> list[T]:
    return [node for node in graph.nodes.values() if isinstance(node, kind)]


def _reads_unknown(node: Node, graph: Graph) -> bool:
    return any(name not in graph.nodes for name in node.inputs)


def _said(node: Node) -> str:
    return f"{kind_of(node)} {node.name!r}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _guess(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f": did you mean {close[0]!r}?" if close else ""
