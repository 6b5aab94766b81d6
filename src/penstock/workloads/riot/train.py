"""TRAIN: model training. A timer asks for ranges of stored readings, and gets a regression and a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.operators import riot
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec, Stream
from penstock.workloads.riot.city import City, find_city

if TYPE_CHECKING:
    import pyarrow as pa

INSTANCES: Mapping[str, int] = {
    "read_rows": 2,
    "regression_training": 2,
    "annotate_class": 1,
    "tree_training": 2,
    "publish": 1,
}


def requests(rows_each: int = 100, *, city: City | None = None) -> pa.Table:
    """The timer's trace for Replay: ranges `rowstart` to `rowend` that walk over the stored readings."""
    import pyarrow as pa

    stored = len((city or find_city()).lines)
    starts = range(0, max(stored - rows_each, 0) + 1, max(rows_each // 2, 1))
    return pa.table(
        {
            "rowstart": pa.array(starts, pa.int64()),
            "rowend": pa.array([start + rows_each for start in starts], pa.int64()),
        }
    )


def train(
    source: SourceSpec,
    *,
    publish: SinkSpec,
    fused: bool = False,
    instances: Mapping[str, int] | None = None,
    city: City | None = None,
) -> Pipeline:
    """Two published models for each of the `requests`; `source` gives rowstart, rowend, arrived and msgid."""
    pipeline = Pipeline("train", fuse=fused)
    timer = pipeline.source("timer", source)
    stored = riot.read_rows((city or find_city()).readings)
    models = _fused(timer, stored) if fused else _unfused(timer, stored, instances or {})
    models.sink("mqtt", publish)
    return pipeline


def _unfused(timer: Stream, stored: riot.Transform, count: Mapping[str, int]) -> Stream:
    def k(name: str) -> int:
        return count.get(name, 1)

    read = timer.operator("read_rows", stored, parallelism=k("read_rows"))
    regressions = read.each_turn(
        "regression_training",
        riot.regression_training(),
        schema=riot.ANSWERS,
        parallelism=k("regression_training"),
    )
    classes = read.operator("annotate_class", riot.annotate_class(), parallelism=k("annotate_class"))
    trees = classes.each_turn(
        "tree_training", riot.tree_training(), schema=riot.ANSWERS, parallelism=k("tree_training")
    )
    return regressions.union("publish", trees, parallelism=k("publish"))


def _fused(timer: Stream, stored: riot.Transform) -> Stream:
    """Both models are fitted in one turn, and leave together."""
    regression, tree = riot.regression_training(), riot.tree_training()
    read = timer.operator("read_rows", riot.in_turn(stored, riot.annotate_class()))
    return read.each_turn("train", lambda rows: regression(rows).unionByName(tree(rows)), schema=riot.ANSWERS)
