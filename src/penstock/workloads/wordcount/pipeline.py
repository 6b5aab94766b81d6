"""Sentences, split, counted and published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.operators.scan import Recurrence, scan
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Transform = Callable[["DataFrame"], "DataFrame"]
OPERATORS = ("split", "count", "publish")


def word_count(
    source: SourceSpec,
    publish: SinkSpec,
    *,
    replicas: Mapping[str, int] | None = None,
    work: Mapping[str, Transform] | None = None,
    latency: str | None = None,
) -> Pipeline:
    """A stage for each operator, and for each word one message with its count so far.

    `source` has the rows of `sentences.SCHEMA`. `replicas` are the slots of each operator at the start,
    `work` what it does besides, such as waiting for an emulated time.
    """
    slots, more = replicas or {}, work or {}

    def operator(name: str, does: Transform) -> Transform:
        return (lambda rows: more[name](does(rows))) if name in more else does

    pipeline = Pipeline("wordcount", fuse=False)
    sentences = pipeline.source("sentences", source)
    words = sentences.operator("split", operator("split", split), parallelism=slots.get("split", 1))
    counted = words.operator(
        "count", operator("count", count), stateful=True, parallelism=slots.get("count", 1)
    )
    messages = counted.operator(
        "publish", operator("publish", as_message), parallelism=slots.get("publish", 1)
    )
    messages.sink("counts", publish, latency=latency)
    return pipeline


def split(sentences: DataFrame) -> DataFrame:
    """A row for each word, with its place."""
    from pyspark.sql import functions as F

    return sentences.select("number", F.posexplode(F.split("sentence", " ")).alias("place", "word"))


def count(words: DataFrame) -> DataFrame:
    """How often each word has come, with every one that comes. With state: a number for each word."""
    counts = Recurrence(
        start={"count": 0},
        step=lambda state, row: {"count": state["count"] + 1},
        emit=lambda state, row: {"count": state["count"]},
    )
    return scan(words, counts, by="word", order=("number", "place"))


def as_message(counted: DataFrame) -> DataFrame:
    """The one column `payload`."""
    from pyspark.sql import functions as F

    return counted.select(F.to_json(F.struct("word", "count")).alias("payload"))
