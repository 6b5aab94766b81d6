"""Who reads whom in a pipeline, with the questions that checking and cutting ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.pipeline.nodes import Loop, Node


class Graph:
    """The edges of a declaration. Inputs that nobody declared are left out; `check` reports them."""

    def __init__(self, nodes: Mapping[str, Node], feeds: Mapping[str, str]) -> None:
        self.nodes = nodes
        self.feeds = feeds
        self.consumers: dict[str, list[str]] = {name: [] for name in nodes}
        self.producers: dict[str, list[str]] = {}
        for name, node in nodes.items():
            given = (feeds[name],) if name in feeds else node.inputs
            self.producers[name] = [p for p in dict.fromkeys(given) if p in nodes]
            for producer in self.producers[name]:
                self.consumers[producer].append(name)

    def below(self, starts: Iterable[str]) -> set[str]:
        """The nodes that rows of `starts` may reach, loops included, with `starts` themselves."""
        return _reach(starts, self.consumers)

    def above(self, starts: Iterable[str]) -> set[str]:
        """The nodes whose rows may reach `starts`, with `starts` themselves."""
        return _reach(starts, self.producers)

    def looping(self, name: str) -> bool:
        """Whether rows that pass this node may come to it again."""
        return name in self.below(self.consumers[name])

    def order(self) -> list[str]:
        """Nodes, each after all it reads, a loop's return aside; ties as declared.

        Nodes in or below a circle that has no declared loop are missing.
        """
        placed: dict[str, None] = {}
        waiting = list(self.nodes)
        while ready := [name for name in waiting if self._forward(name) <= placed.keys()]:
            # One at a time, so that a chain stays together in the order it was declared.
            placed[ready[0]] = None
            waiting.remove(ready[0])
        return list(placed)

    def circle(self) -> list[str]:
        """Nodes that wait for one another, with no loop between them."""
        left = set(self.nodes) - set(self.order())
        while ends := {n for n in left if not left.intersection(self.consumers[n])}:
            left -= ends
        return [name for name in self.nodes if name in left]

    def _forward(self, name: str) -> set[str]:
        return set() if isinstance(self.nodes[name], Loop) else set(self.producers[name])


def _reach(starts: Iterable[str], steps: Mapping[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    ahead = list(starts)
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead.extend(steps[name])
    return reached
