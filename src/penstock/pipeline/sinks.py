"""Where rows can go. Settings only: the runtime writes. Each says how often a row arrives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.queues.spool import Spool


@dataclass(frozen=True)
class Parquet:
    """A directory of Parquet files, named by turn: a turn that runs again replaces its own."""

    path: str | Path
    guarantee: ClassVar[str] = "exactly once"


@dataclass(frozen=True)
class JsonLines:
    """A directory of JSON-lines files, named by turn: a turn that runs again replaces its own."""

    path: str | Path
    guarantee: ClassVar[str] = "exactly once"


@dataclass(frozen=True, eq=False)
class ToSpool:
    """A spool that the user's program opened, to be read by it or by another pipeline."""

    spool: Spool
    guarantee: ClassVar[str] = "exactly once"


@dataclass(frozen=True)
class Console:
    """The first `rows` rows of each turn, printed."""

    rows: int = 20
    guarantee: ClassVar[str] = "at least once"


@dataclass(frozen=True)
class Callback:
    """A function that gets each turn's rows as an Arrow table, and the turn's number."""

    function: Callable[[pa.Table, int], None]
    guarantee: ClassVar[str] = "at least once"


@dataclass(frozen=True)
class ForeachBatch:
    """A function as Spark's foreachBatch takes it: a DataFrame and the batch's number.

    It must run one action over all rows: that is what commits a stateful query.
    """

    function: Callable[[DataFrame, int], None]
    guarantee: ClassVar[str] = "at least once"
