"""The four topologies as the bench runs them: their traces, and how many rows they publish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.pipeline import Pipeline, SinkSpec, SourceSpec
from penstock.workloads.riot.city import find_city
from penstock.workloads.riot.etl import etl
from penstock.workloads.riot.pred import pred
from penstock.workloads.riot.stats import stats
from penstock.workloads.riot.train import requests, train

if TYPE_CHECKING:
    import pyarrow as pa

LINES = "value STRING, arrived TIMESTAMP, msgid BIGINT"
REQUESTS = "rowstart BIGINT, rowend BIGINT, arrived TIMESTAMP, msgid BIGINT"


@dataclass(frozen=True)
class Topology:
    """`declare(source, publish, table, fused)` is the pipeline; only ETL has a table."""

    declare: Callable[[SourceSpec, SinkSpec, SinkSpec, bool], Pipeline]
    trace: Callable[[], pa.Table]
    schema: str
    published: float
    """Rows published for each that is fed in."""


TOPOLOGIES: Mapping[str, Topology] = {
    "etl": Topology(
        lambda source, publish, table, fused: etl(source, publish=publish, table=table, fused=fused),
        lambda: find_city().trace,
        LINES,
        1.0,
    ),
    "pred": Topology(
        lambda source, publish, table, fused: pred(source, publish=publish, fused=fused),
        lambda: find_city().trace,
        LINES,
        2.0,
    ),
    # The first ten values of a series have no trend, so that it begins with 10 and comes near 15 when warm.
    "stats": Topology(
        lambda source, publish, table, fused: stats(source, publish=publish, fused=fused),
        lambda: find_city().trace,
        LINES,
        10.0,
    ),
    "train": Topology(
        lambda source, publish, table, fused: train(source, publish=publish, fused=fused),
        lambda: requests(),
        REQUESTS,
        2.0,
    ),
}
