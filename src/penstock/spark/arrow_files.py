"""Rows that cross from the JVM as Arrow streams in a file."""

# By way of a file: over the Python bridge, some kilobytes wait 40 ms for their second packet.

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The schema that DataFrame.toArrow gives its rows."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema, error_on_duplicated_field_names_in_struct=True, timezone="UTC")


def read_streams(path: Path, schema: pa.Schema) -> pa.Table:
    """The rows of all streams of a file, one after the other."""
    buffer = pa.py_buffer(path.read_bytes())
    source = pa.BufferReader(buffer)
    tables = []
    while source.tell() < buffer.size:
        tables.append(pa.ipc.open_stream(source).read_all().cast(schema))
    return pa.concat_tables(tables)


class BatchTable:
    """Runs micro-batches of a query as Spark has planned them; their rows come by way of a file."""

    def __init__(self, query: DataFrame, path: Path):
        self._path = path
        self._schema = arrow_schema(query)
        # Once: to look for a class by its name costs milliseconds.
        self._write = jvm(query.sparkSession).penstock.BatchRows.write

    def of(self, batch: DataFrame, *, here: bool = False) -> pa.Table:
        """As one job; `here` in the driver's own thread, if the batch has one task and no exchange."""
        return self.written(lambda file, at_once: self._write(batch._jdf, file, at_once), here)

    def written(self, write: Callable[[str, bool], None], here: bool) -> pa.Table:
        """What `write` puts into a file of streams, told its path and whether to run the rows here."""
        write(str(self._path), here)
        return read_streams(self._path, self._schema)
