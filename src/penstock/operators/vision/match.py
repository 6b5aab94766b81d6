"""The feature matcher: which descriptors of the logos a frame has, each part of the index by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from penstock.operators.vision.index import LogoIndex
from penstock.operators.vision.opencv import DESCRIPTOR

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MATCHES = "frame BIGINT, at TIMESTAMP, part INT, features INT, matches ARRAY<BIGINT>"
"""How many descriptors of each logo, in the order of the index, one part of it found in a frame."""
DISTANCE = 225.0
"""Descriptors that are at most so far apart are the same; all have a length of about 512."""


def match_features(
    index: LogoIndex, parts: int = 1, *, distance: float = DISTANCE
) -> Callable[[DataFrame], DataFrame]:
    """A row of MATCHES for each row of FEATURES, which says by `part` what it is matched against."""
    divided = [index.part(number, parts) for number in range(parts)]

    def matching(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _matched(batch, divided, distance)

    return lambda features: features.mapInArrow(matching, MATCHES)


def _matched(batch: pa.RecordBatch, divided: list[LogoIndex], distance: float) -> pa.RecordBatch:
    import pyarrow as pa

    found = []
    pairs = zip(batch.column("part").to_pylist(), batch.column("descriptors"), strict=True)
    for part, descriptors in pairs:
        bytes_of = np.frombuffer(descriptors.as_buffer(), np.uint8).reshape(-1, DESCRIPTOR)
        found.append(divided[part].matches(bytes_of, distance))
    columns = {name: batch.column(name) for name in ("frame", "at", "part", "features")}
    return pa.RecordBatch.from_pydict({**columns, "matches": pa.array(found, pa.list_(pa.int64()))})
