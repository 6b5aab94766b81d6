"""The feature extractor: SIFT on every frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.operators.vision.opencv import opencv, sift_descriptors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

FRAMES = ("frame", "at", "height", "width", "pixels")
FEATURES = "frame BIGINT, at TIMESTAMP, part INT, features INT, descriptors BINARY"
"""The features of a frame for one part of an index: how many, and their descriptors one after the other."""


def extract_features(parts: int = 1) -> Callable[[DataFrame], DataFrame]:
    """For each frame as many rows of FEATURES as the index that they are matched against has parts.

    Frames have the columns `frame`, `at`, `height`, `width` and `pixels`, one byte of grey each.
    One whose pixels are not as many as it is high and wide fails the turn.
    """
    if parts < 1:
        raise PenstockError(f"an index must have 1 part or more, got {parts}: nothing would be matched")
    opencv()

    def apply(frames: DataFrame) -> DataFrame:
        # mapInArrow keeps no state and needs no shuffle: each task takes the frames of its segments.
        return frames.select(*FRAMES).mapInArrow(_extracting(parts), FEATURES)

    return apply


def _extracting(parts: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def extracting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for frame in range(batch.num_rows):
                yield _features(batch.slice(frame, 1), parts)

    return extracting


def _features(frame: pa.RecordBatch, parts: int) -> pa.RecordBatch:
    import numpy as np
    import pyarrow as pa

    height, width = (frame.column(name)[0].as_py() for name in ("height", "width"))
    pixels = np.frombuffer(frame.column("pixels")[0].as_buffer(), np.uint8).reshape(height, width)
    found = sift_descriptors(pixels)
    columns = {
        "frame": pa.array(frame.column("frame").to_pylist() * parts, pa.int64()),
        "at": pa.array(frame.column("at").to_pylist() * parts, frame.column("at").type),
        "part": pa.array(range(parts), pa.int32()),
        "features": pa.array([len(found)] * parts, pa.int32()),
        "descriptors": pa.array([found.tobytes()] * parts, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)
