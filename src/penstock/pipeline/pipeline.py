"""A pipeline as users declare it: sources, operators, sinks, a latency target at each sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NoReturn

from penstock.pipeline.checks import FloorTable, find_mistakes
from penstock.pipeline.endpoints import SourceSpec, source_mistake
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.graph import Graph
from penstock.pipeline.nodes import Loop, Node, Operator, Sink, Source, kind_of, name_mistake
from penstock.pipeline.parsing import field_names
from penstock.pipeline.stream import Stream
from penstock.pipeline.tenant import Tenant


class Pipeline:
    """A named graph of nodes, declared through its streams.

    Mistakes raise PipelineError, at the call where they can be known, else at `check`, all together.
    `version` is the user's own: a checkpoint of another version is refused. `fuse=False` gives every
    operator a stage of its own. Without a `tenant` it is one by itself.
    """

    def __init__(
        self, name: str, *, version: str = "1", fuse: bool = True, tenant: Tenant | None = None
    ) -> None:
        if mistake := name_mistake(name):
            raise PipelineError(str(name), [mistake])
        self.name = name
        self.tenant = tenant or Tenant(name)
        self.version = str(version)
        self.fuse = fuse
        self._nodes: dict[str, Node] = {}
        self._cuts: set[str] = set()
        self._feeds: dict[str, str] = {}

    def source(self, name: str, spec: SourceSpec) -> Stream:
        """The rows that `spec` brings in."""
        if mistake := source_mistake(spec):
            self.refuse("source", name, mistake)
        return self.add(Source(name, spec))

    def loop(self, name: str, schema: str) -> Stream:
        """Rows of `schema` (DDL) that come back from further down: union them in, then `feed` this."""
        if not field_names(schema):
            self.refuse(
                "loop",
                name,
                f"schema must name at least one field, got {schema!r}: an empty loop has no columns",
            )
        return self.add(Loop(name, schema))

    def stream(self, name: str) -> Stream:
        """The stream of a node declared before."""
        if name not in self._nodes:
            self.refuse("stream", name, f"no such node, of {sorted(self._nodes)}: declare it first")
        return Stream(self, name)

    def check(self, floor: FloorTable | None = None) -> tuple[str, ...]:
        """Warnings, or PipelineError with all mistakes at once.

        `floor`, the least seconds a turn takes, lets it warn of targets that no idle machine could meet.
        """
        if mistakes := find_mistakes(self.graph(), self.name):
            raise PipelineError(self.name, mistakes)
        if floor is None:
            return ()
        # Stages are made from pipelines, so that this one question about them is asked late.
        from penstock.stages.floor import targets_below_floor

        return targets_below_floor(self, floor)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Everything declared so far, in that order."""
        return MappingProxyType(self._nodes)

    @property
    def cuts(self) -> frozenset[str]:
        """Names of the nodes behind which `queue` was called."""
        return frozenset(self._cuts)

    def graph(self) -> Graph:
        """Who reads whom, as declared so far."""
        return Graph(dict(self._nodes), dict(self._feeds))

    def add(self, node: Node) -> Stream:
        """The stream of a new node; what Stream's methods end in."""
        kind = kind_of(node)
        if mistake := name_mistake(node.name):
            self.refuse(kind, node.name, mistake)
        if node.name in self._nodes:
            other = f"{kind_of(self._nodes[node.name])} {node.name!r}"
            self.refuse(
                kind, node.name, f"a name must be unique in its pipeline, got that of {other}: pick another"
            )
        if isinstance(node, Operator):
            self._check_operator(node)
        self._nodes[node.name] = node
        return Stream(self, node.name)

    def exchange(self, node: Source | Sink | Operator) -> None:
        """Another source, sink or operator in the place of the one of its name: to try the same elsewhere."""
        kind = kind_of(node)
        if type(self._nodes.get(node.name)) is not type(node):
            self.refuse(kind, node.name, f"there must be a {kind} of that name, of {sorted(self._nodes)}")
        self._nodes[node.name] = node

    def cut_after(self, name: str) -> None:
        """Put a queue behind the node."""
        self._cuts.add(name)

    def close_loop(self, loop: str, producer: str) -> None:
        """Feed the rows of `producer` to `loop`, which may be declared later."""
        if loop in self._nodes and not isinstance(self._nodes[loop], Loop):
            came = f"{kind_of(self._nodes[loop])} {loop!r}"
            self.refuse("loop", loop, f"feed must be given a loop, got {came}: declare a loop() instead")
        if isinstance(self._nodes[producer], Loop):
            self.refuse(
                "loop",
                loop,
                f"a loop must be fed by an operator, got loop {producer!r}: no row would ever change",
            )
        if loop in self._feeds:
            self.refuse(
                "loop",
                loop,
                f"a loop must be fed once, got {self._feeds[loop]!r} and {producer!r}: union them first",
            )
        self._feeds[loop] = producer

    def name_of(self, stream: Stream | str, kind: str, name: str) -> str:
        """The name of a stream of this pipeline."""
        if isinstance(stream, str):
            return stream
        if not isinstance(stream, Stream):
            self.refuse(kind, name, f"a stream or its name must be given, got {type(stream).__name__}")
        if stream.pipeline is not self:
            self.refuse(
                kind,
                name,
                f"streams must be of one pipeline, got {stream.name!r} of {stream.pipeline.name!r}: "
                "let that one write to a spool, and this one read it",
            )
        return stream.name

    def refuse(self, kind: str, name: object, mistake: str) -> NoReturn:
        """Raise for one node."""
        raise PipelineError(self.name, [f"{kind} {name!r}: {mistake}"])

    @contextmanager
    def blaming(self, kind: str, name: str) -> Iterator[None]:
        """Name the node in what is raised about its settings."""
        try:
            yield
        except ValueError as error:
            raise PipelineError(self.name, [f"{kind} {name!r}: {error}"]) from error

    def _check_operator(self, node: Operator) -> None:
        if not callable(node.function):
            came = type(node.function).__name__
            self.refuse(
                node.kind, node.name, f"its function must be callable, got {came}: there is nothing to run"
            )
        if (
            not isinstance(node.parallelism, int)
            or isinstance(node.parallelism, bool)
            or node.parallelism < 1
        ):
            self.refuse(
                node.kind,
                node.name,
                f"parallelism must be a whole number above 0, got {node.parallelism!r}: no task could run it",
            )

    def __repr__(self) -> str:
        return f"<Pipeline {self.name!r}: {len(self._nodes)} nodes>"
