"""The matching aggregator: which logos are in a frame, once all parts of the index have told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.vision.index import LogoIndex

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SHARE = 0.2
"""Of a logo's descriptors, beyond which it is there."""


def aggregate_by_frame(
    index: LogoIndex, parts: int = 1, *, share: float = SHARE
) -> Callable[[DataFrame], DataFrame]:
    """One row for each frame: `frame`, `at`, `features` and `logos`, the names of those that are there.

    A logo is there if more than `share` of its descriptors were found. With state: what is known of
    frames that some part has not told of yet.
    """
    from pyspark.sql import functions as F

    if not 0.0 <= share < 1.0:
        raise PenstockError(f"share must be from 0 to below 1, got {share:g}: no logo could ever be there")
    nothing = [0] * len(index.names)
    logos = [(name, int(size)) for name, size in zip(index.names, index.sizes, strict=True)]

    def add(state: Fields, row: Fields) -> dict[str, Column]:
        sums = F.zip_with(state.matches, row.matches, lambda one, other: one + other)
        return {"told": state.told + 1, "matches": sums}

    def name(state: Fields, row: Fields) -> dict[str, Column]:
        there = [
            F.when(state.matches[place] > F.lit(share * size), F.lit(name))
            for place, (name, size) in enumerate(logos)
        ]
        return {"logos": F.array_compact(F.array(*there))}

    def all_told(state: Fields, row: Fields) -> Column:
        return state.told >= parts

    def apply(matches: DataFrame) -> DataFrame:
        start = {"told": 0, "matches": F.array(*map(F.lit, nothing)).cast("array<bigint>")}
        gathered = scan(matches, Recurrence(start, add, name, all_told, all_told), by="frame")
        return gathered.select("frame", "at", "features", "logos")

    return apply
