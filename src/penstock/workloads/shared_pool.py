"""Four urgent and four bulky pipelines on two slots: more than plain Spark can keep in time.

All are counts over tumbling windows of Spark's own `rate` source. The same streaming DataFrames run on
every side; only who decides about the next batch, and Spark's settings, differ (see `SIDES`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLOTS = 2
# Pieces of state for each query, on every side: eight queries keep two slots busy without more tasks.
PARTITIONS = 1
Group = Literal["urgent", "bulky"]
GROUPS: tuple[Group, ...] = ("urgent", "bulky")


@dataclass(frozen=True)
class Load:
    """One pipeline: what comes in, the window, and how soon after its last row the result is wanted."""

    name: str
    group: Group
    rows_per_second: int
    window_seconds: int
    target_seconds: float

    def frame(self, session: SparkSession) -> DataFrame:
        """The streaming DataFrame. One input partition: the slots are busy with eight queries as it is."""
        from pyspark.sql import functions as F

        source = session.readStream.format("rate").option("rowsPerSecond", self.rows_per_second)
        rows = source.option("numPartitions", 1).load().withWatermark("timestamp", "0 seconds")
        window = F.window("timestamp", f"{self.window_seconds} seconds")
        return rows.groupBy(window).agg(F.count("*").alias("n"))


LOADS: tuple[Load, ...] = (
    *(Load(f"urgent-{number}", "urgent", 1_000, 1, 0.8) for number in range(1, 5)),
    *(Load(f"bulky-{number}", "bulky", 100_000, 10, 60.0) for number in range(1, 5)),
)


@dataclass(frozen=True)
class Side:
    """One way to run the pipelines."""

    key: str
    label: str
    what: str


SIDES: dict[str, Side] = {
    side.key: side
    for side in (
        Side(
            "spark",
            "plain Spark",
            f"Spark's own settings and FIFO, with {PARTITIONS} shuffle partition, without adaptive execution",
        ),
        Side("tuned", "tuned FIFO", "Penstock's session settings and FIFO, without its scheduler"),
        Side(
            "fair",
            "tuned FAIR",
            "Penstock's session settings and a FAIR pool for each query, of ten times the weight if urgent",
        ),
        Side("penstock", "Penstock", "the same queries under Penstock's scheduler, by least laxity"),
    )
}


def side_named(key: str) -> Side:
    if key not in SIDES:
        raise PenstockError(
            f"a side must be one of {', '.join(SIDES)}, got {key!r}: there is no such way to run"
        )
    return SIDES[key]
