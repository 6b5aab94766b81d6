"""The two sides: a topology under Penstock's engine, and the same on plain Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from penstock.bench.plain_queries import PROGRESS_KEPT, PlainQueries
from penstock.measure.turns import TurnRecord
from penstock.pipeline.endpoints import SourceSpec
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.sources import FromSpool
from penstock.queues.segment import Arrivals
from penstock.queues.spool import Spool
from penstock.stages.fuse import cut
from penstock.stages.stage import StageGraph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOTS = 2
Declare = Callable[[SourceSpec], Pipeline]
"""A topology that reads a given source."""
# The same for both sides, which have a heap of 2 GB beside it. While one side is measured the other is
# stopped by a signal, for minutes: no heartbeat must be missed for that.
SETTINGS: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.executor.heartbeatInterval": "3000s",
    "spark.network.timeout": "7200s",
}
ROOMY: Mapping[str, str] = {**SETTINGS, "spark.driver.memory": "2g"}


class Side(Protocol):
    """One way to run a topology."""

    graph: StageGraph
    session: SparkSession

    def put(self, table: pa.Table, due: float, /) -> None:
        """Takes in rows that arrived at `due`."""
        ...

    def turns(self) -> list[TurnRecord]:
        """The turns that ended well, at least those since it was last tidied."""
        ...

    @property
    def error(self) -> str:
        """Why it does not run any more; "" while it does."""
        ...

    @property
    def idle(self) -> bool:
        """Whether no row waits and no turn runs; on plain Spark only as it seems for the moment."""
        ...

    def tidy(self) -> None:
        """Removes what is read and no longer needed, and forgets turns; called idle."""
        ...

    @property
    def scheduler_seconds(self) -> tuple[float, float]:
        """Time in the scheduler so far, and the part of it in which a core worked."""
        ...


class Ours:
    """A pipeline under an engine; its turns are kept, unless `keep` is false."""

    def __init__(
        self,
        declare: Declare,
        schema: str,
        folder: Path,
        policy: str,
        session: SparkSession | None = None,
        slots: int = SLOTS,
        *,
        settings: Mapping[str, str] = ROOMY,
        keep: bool = True,
    ):
        """A `session` of its own where none is given, with `settings`, on so many slots of this process."""
        from penstock.spark.engine import Engine
        from penstock.spark.session import build_session

        self.session: SparkSession = session or build_session(cores=slots, settings=settings)
        self.engine = Engine(self.session, state=folder / "state", slots=slots, policy=policy)
        self._spool = Spool(folder / "source")
        self._turns: list[TurnRecord] = []
        if keep:
            self.engine.on_turn(self._turns.append)
        self._schema = schema
        self.graph = self._submit(declare)

    def _submit(self, declare: Declare) -> StageGraph:
        pipeline = declare(FromSpool(self._spool, self._schema))
        self._running = self.engine.submit(pipeline)
        return self._running.graph

    def change(self, declare: Declare) -> None:
        """Runs another pipeline from here on; nothing waits in the one that goes."""
        self.engine.cancel(self._running.name, forget=True)
        self._turns.clear()
        self.graph = self._submit(declare)

    def put(self, table: pa.Table, due: float) -> None:
        self._spool.append(table, arrivals=Arrivals.at(due, table.num_rows))

    def turns(self) -> list[TurnRecord]:
        return list(self._turns)

    @property
    def error(self) -> str:
        return str(self._running.error or "") if self._running.state == "failed" else ""

    @property
    def idle(self) -> bool:
        return self._running.idle

    def tidy(self) -> None:
        """Segments go when they are consumed, by themselves."""
        self._turns.clear()

    @property
    def scheduler_seconds(self) -> tuple[float, float]:
        return self.engine.scheduler_seconds, self.engine.scheduler_cpu_seconds


def plain_settings(polling_ms: int) -> dict[str, str]:
    """What the queries of the plain side ask of their session beside."""
    return {
        "spark.sql.streaming.numRecentProgressUpdates": str(PROGRESS_KEPT),
        "spark.sql.streaming.pollingDelay": f"{polling_ms}ms",
    }


class Plain:
    """One query for each stage."""

    scheduler_seconds = (0.0, 0.0)

    def __init__(
        self,
        declare: Declare,
        schema: str,
        folder: Path,
        polling_ms: int,
        session: SparkSession | None = None,
        parallel: bool = False,
    ):
        """`parallel` deals rows to as many tasks as a stage declares, also where they came as one file."""
        from penstock.spark.jvm import schema_from_ddl
        from penstock.spark.session import build_session

        self.session: SparkSession = session or build_session(
            cores=SLOTS, settings={**ROOMY, **plain_settings(polling_ms)}
        )
        spool = Spool(folder / "unused")
        self.graph = cut(declare(FromSpool(spool, schema)))
        fed = [queue.name for queue in self.graph.queues.values() if queue.source is not None]
        self._queries = PlainQueries(
            self.session,
            self.graph,
            {name: schema_from_ddl(schema) for name in fed},
            folder,
            parallel=parallel,
        )
        self._sources = [self._queries.folders[name] for name in fed]
        self._queries.start()

    def put(self, table: pa.Table, due: float) -> None:
        for folder in self._sources:
            folder.put(table)

    def turns(self) -> list[TurnRecord]:
        return self._queries.turns()

    @property
    def error(self) -> str:
        return self._queries.error

    @property
    def idle(self) -> bool:
        return self._queries.idle

    def tidy(self) -> None:
        self._queries.clear()
