"""One stream of a pipeline: what its rows go through next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.pipeline.endpoints import SinkSpec, sink_mistake
from penstock.pipeline.latency import Duration, parse_latency
from penstock.pipeline.nodes import Operator, Sink
from penstock.pipeline.parsing import Parsing, TextFormat, field_names, parse_function
from penstock.pipeline.topic_queue import halves, topic_mistake
from penstock.pipeline.windows import as_tuple, window_function, window_settings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.pipeline.pipeline import Pipeline
    from penstock.pipeline.sinks import Kafka


@dataclass(frozen=True, repr=False)
class Stream:
    """The rows that leave one node.

    Where a method asks for another stream, its name serves too, even before it is declared.
    """

    pipeline: Pipeline
    name: str

    def operator(
        self,
        name: str,
        function: Callable[[DataFrame], DataFrame],
        *,
        parallelism: int = 1,
        fuse: bool = True,
        dead_letters: bool = False,
        stateful: bool = False,
        watermark: str | None = None,
        forgets: bool = False,
        block: int = 0,
    ) -> Stream:
        """The rows that `function` makes of these.

        `stateful`: it remembers rows between turns; `watermark`: the column it calls withWatermark on;
        `forgets`: it lets go of what it needs no more by itself, as a scan does with `forgets_if`.
        `block`: so many rows must be there before it makes anything, which policy batchit waits for.
        With `dead_letters`, rows whose column `dead_letter` (a reason) is not null are put aside.
        """
        settings = Operator(
            name, "operator", (self.name,), function, parallelism, fuse, dead_letters, stateful, watermark
        )
        if block < 0:
            self.pipeline.refuse("operator", name, f"block must be 0 rows or more, got {block}")
        settings = replace(settings, block=block, forgets=forgets)
        return self.pipeline.add(settings)

    def window(
        self,
        name: str,
        *,
        on: str,
        size: Duration,
        slide: Duration | None = None,
        late: Duration = "0s",
        by: str | Sequence[str] = (),
        aggregate: str | Column | Sequence[str | Column],
        parallelism: int = 1,
        fuse: bool = True,
    ) -> Stream:
        """One row for each window and key: the struct `window`, the keys `by`, the aggregates.

        Aggregates are SQL ("count(*) as n") or Columns. Rows later than `late` go to the dead letters.
        """
        with self.pipeline.blaming("window", name):
            window = window_settings(on, size, slide, late, by, aggregate)
        function = window_function(window, as_tuple(aggregate))
        return self.pipeline.add(
            Operator(
                name,
                "window",
                (self.name,),
                function,
                parallelism,
                fuse,
                stateful=True,
                watermark=on,
                window=window,
            )
        )

    def parse(
        self,
        name: str,
        schema: str,
        *,
        column: str = "value",
        format: TextFormat = "json",
        keep: str | Sequence[str] = (),
        parallelism: int = 1,
        fuse: bool = True,
    ) -> Stream:
        """The fields of `schema` (DDL), read from a column of text, behind the columns of `keep`.

        Rows that do not parse, or lack a field that is NOT NULL, go to the dead letters with the reason.
        """
        with self.pipeline.blaming("parse", name):
            kept = (keep,) if isinstance(keep, str) else tuple(keep)
            parsing = Parsing(schema, column, format, kept)
        function = parse_function(parsing)
        settings: tuple[tuple[str, str], ...] = (("schema", schema), ("column", column), ("format", format))
        settings += (("keep", ", ".join(kept)),) if kept else ()
        return self.pipeline.add(
            Operator(
                name, "parse", (self.name,), function, parallelism, fuse, dead_letters=True, settings=settings
            )
        )

    def each_turn(
        self,
        name: str,
        function: Callable[[DataFrame], DataFrame],
        *,
        schema: str,
        parallelism: int = 1,
        fuse: bool = True,
    ) -> Stream:
        """The rows of `schema` (DDL) that `function` makes of these, called anew at every turn.

        It may run jobs of its own, such as MLlib's `fit`; each of them reads the turn's rows again,
        unless it persists them (what it persists goes with the turn). A turn that runs again calls it again.
        """
        if not field_names(schema):
            mistake = f"schema must name at least one field, got {schema!r}: rows would have no column"
            self.pipeline.refuse("each_turn", name, mistake)
        settings = (("schema", schema),)
        return self.pipeline.add(
            Operator(
                name,
                "each_turn",
                (self.name,),
                function,
                parallelism,
                fuse,
                settings=settings,
                turn_schema=schema,
            )
        )

    def union(self, name: str, *others: Stream | str, parallelism: int = 1, fuse: bool = True) -> Stream:
        """The rows of this stream and the others, columns matched by name."""
        if not others:
            self.pipeline.refuse(
                "union", name, "a union must have two streams or more, got one: it would do nothing"
            )
        inputs = (self.name, *(self.pipeline.name_of(other, "union", name) for other in others))
        return self.pipeline.add(Operator(name, "union", inputs, union_by_name, parallelism, fuse))

    def join(
        self,
        name: str,
        other: Stream | str,
        function: Callable[[DataFrame, DataFrame], DataFrame],
        *,
        parallelism: int = 1,
        fuse: bool = True,
        watermark: str | None = None,
    ) -> Stream:
        """The rows that `function` makes of this stream and another, as its two arguments in that order."""
        inputs = (self.name, self.pipeline.name_of(other, "join", name))
        return self.pipeline.add(
            Operator(name, "join", inputs, function, parallelism, fuse, stateful=True, watermark=watermark)
        )

    def queue(self, through: Kafka | None = None) -> Stream:
        """The same rows, by way of a queue: what is above and what is below run in turns of their own.

        `through` a Kafka topic, which this queue must have for itself, rows go at least once; without, once.
        """
        if through is None:
            self.pipeline.cut_after(self.name)
            return self
        if mistake := topic_mistake(through):
            self.pipeline.refuse("queue", self.name, mistake)
        node = self.pipeline.nodes[self.name]
        above, below = halves(self.name, through, node.parallelism if isinstance(node, Operator) else 1)
        self.pipeline.add(above)
        return self.pipeline.add(below)

    def feed(self, loop: Stream | str) -> None:
        """Let these rows come in again at `loop`."""
        self.pipeline.close_loop(self.pipeline.name_of(loop, "feed of", self.name), self.name)

    def sink(self, name: str, spec: SinkSpec, *, latency: Duration | None = None) -> None:
        """Write the rows out, within `latency` of their arrival at the source.

        Without it the target is that of the pipeline's tenant, if that has one.
        """
        if mistake := sink_mistake(spec):
            self.pipeline.refuse("sink", name, mistake)
        with self.pipeline.blaming("sink", name):
            wanted = self.pipeline.tenant.latency if latency is None else latency
            target = None if wanted is None else parse_latency(wanted)
        self.pipeline.add(Sink(name, self.name, spec, target))

    def __repr__(self) -> str:
        return f"<Stream {self.name!r} of pipeline {self.pipeline.name!r}>"


def union_by_name(first: Any, *others: Any) -> Any:
    """All rows of DataFrames with the same columns, in whatever order the columns stand."""
    for other in others:
        first = first.unionByName(other)
    return first
