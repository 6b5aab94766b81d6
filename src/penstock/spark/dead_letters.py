"""The rows that pipelines put aside."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.queues.spool import Spool
from penstock.spark.results import DEAD_LETTER, RAW


def dead_letters_in(spools: Iterable[Spool]) -> pa.Table:
    """All rows in these queues: `dead_letter` (the reason) and `raw`."""
    tables = [
        pq.read_table(spool.path / file)
        for spool in spools
        for segment in spool.segments
        for file in segment.files
    ]
    empty = pa.table({DEAD_LETTER: pa.array([], pa.string()), RAW: pa.array([], pa.string())})
    return pa.concat_tables([empty, *tables])
