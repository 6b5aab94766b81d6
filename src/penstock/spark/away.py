"""Which brokers of a pipeline are not there, as its stages know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.spark.stage_base import StageBase
from penstock.stages.stage import StageGraph


def away_from(stages: Iterable[StageBase], graph: StageGraph) -> frozenset[str]:
    """The topics that are read, and the sinks and topics that are written, whose broker is away."""
    return frozenset(name for stage in stages for name in _away(stage, graph))


def _away(stage: StageBase, graph: StageGraph) -> Iterator[str]:
    yield from stage.sources_away
    if stage.end_is_away:
        declared = graph.stage(stage.name)
        yield f"{graph.pipeline}.{declared.sink.name}" if declared.sink else str(declared.output)
