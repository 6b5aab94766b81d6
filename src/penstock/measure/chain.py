"""How steeply the stages of a pipeline let rows vanish: the progress charts of chain scheduling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.measure.profiles import StageProfile


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of a progress chart, for one row at its start: rows that vanish, seconds that takes."""

    gone: float
    seconds: float

    @property
    def slope(self) -> float:
        return self.gone / self.seconds

    def times(self, rows: float) -> _Piece:
        return _Piece(self.gone * rows, self.seconds * rows)

    def with_(self, other: _Piece) -> _Piece:
        return _Piece(self.gone + other.gone, self.seconds + other.seconds)


Chart = tuple[_Piece, ...]
"""The lower envelope of a progress chart: pieces from steep to flat."""


def steepness(
    readers: Mapping[str, Sequence[str]], profiles: Mapping[str, StageProfile]
) -> dict[str, float | None]:
    """Rows that vanish per second of work from each stage on, at best; None where it is not known yet.

    Under 0 where rows become more on every way that is known.

    `readers` gives the stages that read what a stage writes; without any, its rows leave the system.
    On a path it is the greatest (1 - product of selectivities) / (sum of costs) over the stages a row
    may pass next, each cost being that of the rows that are left by then: the slope of the lower
    envelope of the progress chart of Babcock et al. (SIGMOD 2003).

    At a fork every reader gets all the rows, so a row that s remain of becomes s rows for each of
    the readers, and the branches need not be followed equally far: the steepest way takes the steep
    part of each. Stages after an unknown one are left out until it is known. No loops: `readers`
    must leave the way back out.

    >>> def profile(seconds, selectivity):
    ...     return StageProfile(seconds, selectivity, seconds, 0.0, turns=1)
    >>> slopes = steepness(
    ...     {"parse": ["filter"], "filter": ["sink"], "sink": []},
    ...     {"parse": profile(0.5, 1.0), "filter": profile(0.25, 0.1), "sink": profile(1.0, 1.0)},
    ... )
    >>> [round(slopes[name], 3) for name in ("parse", "filter", "sink")]
    [1.2, 3.6, 1.0]
    """
    charts: dict[str, Chart] = {}
    for stage in readers:
        _chart(stage, readers, profiles, charts)
    return {stage: chart[0].slope if chart else None for stage, chart in charts.items()}


def _chart(
    stage: str,
    readers: Mapping[str, Sequence[str]],
    profiles: Mapping[str, StageProfile],
    charts: dict[str, Chart],
) -> Chart:
    """The envelope from a stage on. Its first piece takes in what follows as long as that is steeper."""
    if stage in charts:
        return charts[stage]
    profile = profiles.get(stage)
    if profile is None:
        charts[stage] = ()
        return ()
    below = readers[stage]
    left = profile.selectivity
    pieces = (piece.times(left) for each in below for piece in _chart(each, readers, profiles, charts))
    # What so few rows reach that it takes no time at all is as good as not there.
    rest = _from_steep_to_flat([piece for piece in pieces if piece.seconds > 0.0])
    first = _Piece(1.0 - left * len(below), profile.seconds_per_row)
    while rest and rest[0].slope > first.slope:
        first = first.with_(rest.pop(0))
    charts[stage] = (first, *rest)
    return charts[stage]


def _from_steep_to_flat(pieces: list[_Piece]) -> list[_Piece]:
    """Sorted by slope, equal ones as one: a stage that is reached by many ways stays one piece."""
    sorted_pieces: list[_Piece] = []
    for piece in sorted(pieces, key=lambda each: -each.slope):
        if sorted_pieces and _equal(sorted_pieces[-1].slope, piece.slope):
            sorted_pieces[-1] = sorted_pieces[-1].with_(piece)
        else:
            sorted_pieces.append(piece)
    return sorted_pieces


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-12 * max(abs(one), abs(other))
