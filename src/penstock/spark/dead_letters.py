"""The rows that pipelines put aside."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.queues.spool import Spool
from penstock.spark.results import DEAD_LETTER, RAW


def clear_request(folder: Path) -> Path:
    """Made by `penstock dead-letters --clear` for an engine that runs: rows put aside by when are to go."""
    return folder / "clear-dead-letters"


def dead_letters_in(spools: Iterable[Spool]) -> pa.Table:
    """All rows in these queues: `dead_letter` (the reason) and `raw`."""
    tables = []
    for spool in spools:
        for file in (file for segment in spool.segments for file in segment.files):
            # Cleared meanwhile, it is not there any more.
            with suppress(FileNotFoundError):
                tables.append(pq.read_table(spool.path / file))
    empty = pa.table({DEAD_LETTER: pa.array([], pa.string()), RAW: pa.array([], pa.string())})
    return pa.concat_tables([empty, *tables])
