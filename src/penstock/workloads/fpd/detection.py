"""The pipeline: two sources, a generator of candidates, a detector that feeds itself, a reporter."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.operators.text import CANDIDATES, candidate_patterns, detect_patterns, report_patterns
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec
from penstock.pipeline.latency import Duration

STAGES = ("generate", "detect", "report")


def fpd(
    entering: SourceSpec,
    leaving: SourceSpec,
    sink: SinkSpec,
    *,
    frequent_at: int,
    most_words: int = 5,
    slots: Mapping[str, int] | None = None,
    latency: Duration | None = None,
) -> Pipeline:
    """A row whenever a set of words becomes a maximal frequent pattern of the window, or is so no longer.

    Both sources give tweets (SCHEMA): those that come into the window with sign 1, those that leave it with
    -1. It does not matter which of them comes first. `slots` has the slots of the stages (STAGES), else one
    each.
    """
    count = slots or {}
    pipeline = Pipeline("fpd")
    k = count.get("generate", 1)
    leaves = pipeline.source("leaving", leaving)
    tweets = pipeline.source("entering", entering).union("tweets", leaves, parallelism=k)
    candidates = tweets.operator("generate", candidate_patterns(most_words), parallelism=k).queue()
    again, k = pipeline.loop("again", CANDIDATES), count.get("detect", 1)
    news = candidates.union("news", again, parallelism=k)
    told = news.operator("detect", detect_patterns(frequent_at), stateful=True, forgets=True, parallelism=k)
    told.feed(again)
    reported = told.operator("report", report_patterns(), parallelism=count.get("report", 1))
    reported.sink("patterns", sink, latency=latency)
    return pipeline
