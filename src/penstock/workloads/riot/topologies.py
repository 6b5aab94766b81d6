"""The four applications by name: how each is declared, what it is fed with, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec
from penstock.workloads.riot.city import City, find_city
from penstock.workloads.riot.etl import INSTANCES as ETL
from penstock.workloads.riot.etl import etl
from penstock.workloads.riot.pred import INSTANCES as PRED
from penstock.workloads.riot.pred import pred
from penstock.workloads.riot.stats import INSTANCES as STATS
from penstock.workloads.riot.stats import stats
from penstock.workloads.riot.train import INSTANCES as TRAIN
from penstock.workloads.riot.train import requests, train

if TYPE_CHECKING:
    import pyarrow as pa

LINES = "value STRING, arrived TIMESTAMP, msgid BIGINT"
REQUESTS = "rowstart BIGINT, rowend BIGINT, arrived TIMESTAMP, msgid BIGINT"


@dataclass(frozen=True)
class Topology:
    """One application.

    `schema` (DDL) is what its source gives: the columns of its trace, with `arrived` and `msgid`. In the
    long run `sink_rows` are published for each input row, and `stored_rows` go into a table.
    """

    name: str
    function: Callable[..., Pipeline]
    instances: Mapping[str, int]
    sink_rows: float
    stored_rows: float = 0.0
    schema: str = LINES

    def trace(self, city: City | None = None) -> pa.Table:
        """What its source plays, in a loop."""
        city = city or find_city()
        return requests(city=city) if self.schema == REQUESTS else city.trace

    def declare(
        self,
        source: SourceSpec,
        *,
        publish: SinkSpec,
        table: SinkSpec | None = None,
        fused: bool = False,
        instances: Mapping[str, int] | None = None,
    ) -> Pipeline:
        """The pipeline; `table` is asked for by those that store rows, and not used by the others."""
        ends = {"publish": publish, "table": table} if self.stored_rows else {"publish": publish}
        return self.function(source, fused=fused, instances=instances, **ends)


TOPOLOGIES: Mapping[str, Topology] = {
    each.name: each
    for each in (
        Topology("etl", etl, ETL, sink_rows=1.0, stored_rows=1.0),
        Topology("pred", pred, PRED, sink_rows=2.0),
        # 15, but the first ten values of a series have no trend: 14.8 in a run as long as RIoTBench's.
        Topology("stats", stats, STATS, sink_rows=14.8),
        Topology("train", train, TRAIN, sink_rows=2.0, schema=REQUESTS),
    )
}
PAPER_INSTANCES: Mapping[str, Mapping[str, int]] = {name: each.instances for name, each in TOPOLOGIES.items()}
"""EdgeWise, figure 6: tuned for the four cores of a Raspberry Pi."""


def topology(name: str) -> Topology:
    """An application by its name."""
    if name not in TOPOLOGIES:
        raise PenstockError(
            f"a topology must be one of {', '.join(TOPOLOGIES)}, got {name!r}: there is no other"
        )
    return TOPOLOGIES[name]
