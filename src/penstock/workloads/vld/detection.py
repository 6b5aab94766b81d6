"""The pipeline: a chain of three stages, of which the second gets a row for each part of the index."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.operators.vision import LogoIndex, aggregate_by_frame, extract_features, match_features
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec
from penstock.pipeline.latency import Duration

STAGES = ("extract", "match", "aggregate")
PARTS = 2


def vld(
    source: SourceSpec,
    sink: SinkSpec,
    *,
    index: LogoIndex,
    parts: int = PARTS,
    slots: Mapping[str, int] | None = None,
    latency: Duration | None = None,
) -> Pipeline:
    """One row for each frame of `source` (SCHEMA): frame, at, features, and the logos that are in it.

    The index is divided into `parts`; `slots` has the slots of the stages (STAGES), else one each.
    """
    count = slots or {}
    pipeline = Pipeline("vld", fuse=False)
    frames = pipeline.source("frames", source)
    features = frames.operator("extract", extract_features(parts), parallelism=count.get("extract", 1))
    matches = features.operator("match", match_features(index, parts), parallelism=count.get("match", 1))
    found = matches.operator(
        "aggregate", aggregate_by_frame(index, parts), stateful=True, parallelism=count.get("aggregate", 1)
    )
    found.sink("logos", sink, latency=latency)
    return pipeline
