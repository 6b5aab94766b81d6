"""The shapes: logo detection, frequent patterns with their loop, a chain, two paths, a loop.

Stages wait for each of their rows, so long as is declared. `gather` and `merge` only bring two streams
together, which in a stage that waits would give it twice its tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from penstock.operators.emulate import service
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec, Stream
from penstock.pipeline.latency import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CANDIDATES = 4
"""Patterns of a tweet."""
TWICE_IN = 3
"""One input in so many goes through a loop a second time."""
ROUNDS = "input BIGINT, part INT, rounds INT"


@dataclass(frozen=True)
class Declared:
    """What a stage is said to do."""

    row_seconds: float
    """Mean service time; 0 for a stage that does not wait."""
    scv: float = 0.0
    """Squared coefficient of variation of service times."""
    rows: float = 1.0
    """Rows of an input that are waited for."""
    visits: float = 1.0
    """Turns of an input, one after the other."""


@dataclass(frozen=True)
class Laying:
    """Lays stages that wait, each with its slots."""

    pipeline: Pipeline
    stages: Mapping[str, Declared]
    slots: Mapping[str, int]

    def serve(self, rows: Stream, name: str, first: Callable[[DataFrame], DataFrame] | None = None) -> Stream:
        """A stage of that name: what `first` makes of the rows, after they were waited for."""
        k, declared = self.slots.get(name, 1), self.stages[name]
        rows.queue()
        if first is not None:
            rows = rows.operator(f"{name}_rows", first, parallelism=k)
        # By row: every allocation has the same work to do, whichever turns its rows come to be in.
        seed = sorted(self.stages).index(name)
        waits = service(declared.row_seconds, declared.scv, seed, by_row=True)
        return rows.operator(name, waits, parallelism=k)


@dataclass(frozen=True)
class Topology:
    """A pipeline of stages that wait. An input is done when `results` rows of it are at the sink."""

    name: str
    stages: Mapping[str, Declared]
    lay: Callable[[Stream, Laying], Stream] = field(repr=False)
    results: int = 1

    def pipeline(
        self,
        source: SourceSpec,
        sink: SinkSpec,
        slots: Mapping[str, int] | None = None,
        latency: Duration | None = None,
    ) -> Pipeline:
        """With so many slots for each stage, else one; `source` gives the column `input`."""
        pipeline = Pipeline(self.name)
        inputs = pipeline.source("inputs", source)
        self.lay(inputs, Laying(pipeline, self.stages, slots or {})).sink("done", sink, latency=latency)
        return pipeline

    def with_scv(self, scv: float) -> Topology:
        """The same, with that squared coefficient of variation wherever service times vary at all."""
        stages = {
            name: Declared(each.row_seconds, scv if each.scv else 0.0, each.rows, each.visits)
            for name, each in self.stages.items()
        }
        return Topology(self.name, stages, self.lay, self.results)

    def with_work(self, factor: float) -> Topology:
        """The same, where rows take so many times as long."""
        stages = {
            name: replace(each, row_seconds=factor * each.row_seconds) for name, each in self.stages.items()
        }
        return Topology(self.name, stages, self.lay, self.results)


def _vld(frames: Stream, at: Laying) -> Stream:
    features = at.serve(frames, "extract")
    matches = at.serve(features, "match")
    return at.serve(matches, "aggregate")


def _fpd(tweets: Stream, at: Laying) -> Stream:
    generated = at.serve(tweets, "generate")
    again = at.pipeline.loop("again", ROUNDS)
    candidates = generated.queue().operator("candidates", _in_parts(CANDIDATES))
    gathered = candidates.union("news", again).operator("gather", _to_do)
    detected = at.serve(gathered, "detect", _next_round)
    detected.feed(again)
    return at.serve(detected, "report", _done)


def _chain(rows: Stream, at: Laying) -> Stream:
    for name in ("parse", "enrich", "score", "store"):
        rows = at.serve(rows, name)
    return rows


def _two_path(rows: Stream, at: Laying) -> Stream:
    read = at.serve(rows, "read")
    left = at.serve(read, "left", lambda each: each.filter("pmod(xxhash64(input), 2) = 0"))
    right = at.serve(read, "right", lambda each: each.filter("pmod(xxhash64(input), 2) = 1"))
    return left.queue().union("merge", right.queue())


def _loop(rows: Stream, at: Laying) -> Stream:
    again = at.pipeline.loop("again", ROUNDS)
    begun = rows.operator("begun", _in_parts(1))
    gathered = begun.union("news", again).operator("gather", _to_do)
    worked = at.serve(gathered, "work", _next_round)
    worked.feed(again)
    return at.serve(worked, "check", _done)


def _in_parts(parts: int) -> Callable[[DataFrame], DataFrame]:
    columns = ("input", f"explode(sequence(1, {parts})) as part", "0 as rounds")
    return lambda rows: rows.selectExpr(*columns)


def _next_round(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("input", "part", "rounds + 1 as rounds")


_LAST = f"rounds >= if(pmod(xxhash64(input), {TWICE_IN}) = 0, 2, 1)"


def _to_do(rows: DataFrame) -> DataFrame:
    return rows.filter(f"not ({_LAST})")


def _done(rows: DataFrame) -> DataFrame:
    return rows.filter(_LAST)


_AGAIN = 1 + 1 / TWICE_IN
TOPOLOGIES: Mapping[str, Topology] = MappingProxyType(
    {
        each.name: each
        for each in (
            Topology(
                "vld",
                {
                    "extract": Declared(0.30, 0.1),
                    "match": Declared(0.33, 0.1),
                    "aggregate": Declared(0.01),
                },
                _vld,
            ),
            Topology(
                "fpd",
                {
                    "generate": Declared(0.06, 0.5),
                    "gather": Declared(0.0, rows=CANDIDATES * _AGAIN, visits=_AGAIN),
                    "detect": Declared(0.03, 1.0, rows=CANDIDATES * _AGAIN, visits=_AGAIN),
                    "report": Declared(0.015, 0.0, rows=CANDIDATES),
                },
                _fpd,
                results=CANDIDATES,
            ),
            Topology(
                "chain",
                {
                    "parse": Declared(0.10, 1.0),
                    "enrich": Declared(0.20, 0.5),
                    "score": Declared(0.15),
                    "store": Declared(0.05, 0.5),
                },
                _chain,
            ),
            Topology(
                "two-path",
                {
                    "read": Declared(0.05),
                    "left": Declared(0.40, 0.1, rows=0.5, visits=0.5),
                    "right": Declared(0.20, 0.1, rows=0.5, visits=0.5),
                    "merge": Declared(0.0),
                },
                _two_path,
            ),
            Topology(
                "loop",
                {
                    "gather": Declared(0.0, rows=_AGAIN, visits=_AGAIN),
                    "work": Declared(0.25, 0.2, rows=_AGAIN, visits=_AGAIN),
                    "check": Declared(0.05),
                },
                _loop,
            ),
        )
    }
)
