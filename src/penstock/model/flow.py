"""Which stages read from which, and how often an input passes each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.model.traffic import rates_through

OUTSIDE = ""
"""The name of the only source, where there is one."""
KEPT = 0.98
"""Rows made of each, from which on a reader counts as one that drops none."""


class Read(NamedTuple):
    """A stage reads what a producer writes, and makes so many rows of each."""

    producer: str
    """A stage, or a source."""
    rows_made: float


Reads = Mapping[str, tuple[Read, ...]]
"""By stage. One that nobody reads brings its rows to a sink."""
Sources = Mapping[str, float]
"""Rows a second from outside, by names that no stage has."""


def visits(reads: Reads, sources: Sources) -> dict[str, float]:
    """How often a row that comes to a sink has passed each stage, on its way from outside.

    That is what an input pays: rows that share turns pay once, however many they are, and those that
    are dropped pay nothing. With V(i), the rows that come to a sink of one that stage i has written, a row
    of i goes on through reader j with the chance rows_made V(j) / V(i). Unless ways are `entangled`, inputs
    go all ways, and pay for each. Empty where nothing comes to a sink.

    >>> both = {"read": (Read("", 1.0),), "left": (Read("read", 0.5),), "right": (Read("read", 0.5),)}
    >>> visits(both, {"": 10.0})
    {'read': 1.0, 'left': 0.5, 'right': 0.5}
    >>> visits({**both, "left": (Read("read", 1.0),), "right": (Read("read", 1.0),)}, {"": 10.0})
    {'read': 1.0, 'left': 1.0, 'right': 1.0}
    """
    readers, whole = _readers(reads, sources), not entangled(reads)
    worth = _worth(reads, readers)
    worth |= {name: sum(made * worth[each] for each, made in readers[name].items()) for name in sources}
    begun = {name: rate * worth[name] for name, rate in sources.items()}
    if not sum(begun.values()) > 0.0:
        return {}
    outside = {name: each / sum(begun.values()) for name, each in begun.items()} | dict.fromkeys(reads, 0.0)
    onwards = {
        name: {
            each: 1.0 if whole else made * worth[each] / worth[name] for each, made in readers[name].items()
        }
        for name in outside
        if worth[name] > 0.0
    }
    passed = rates_through(outside, onwards)
    return {name: passed[name] for name in reads}


def entangled(reads: Reads) -> bool:
    """Whether ways part or lead back so that an input's rows do not all go all of its ways.

    >>> entangled({"read": (Read("", 1.0),), "left": (Read("read", 1.0),), "right": (Read("read", 1.0),)})
    False
    >>> entangled({"read": (Read("", 1.0),), "left": (Read("read", 1.0),), "right": (Read("read", 0.5),)})
    True
    """
    sources = {read.producer: 0.0 for each in reads.values() for read in each if read.producer not in reads}
    parted = (each for each in _readers(reads, sources).values() if len(each) > 1)
    return any(made < KEPT for each in parted for made in each.values()) or _loops(reads)


def rates_of(reads: Reads, sources: Sources) -> dict[str, float]:
    """How fast rows come to each stage, if all of them keep up.

    >>> rates_of({"read": (Read("", 2.0),), "match": (Read("read", 1.0), Read("match", 0.5))}, {"": 10.0})
    {'read': 10.0, 'match': 60.0}
    """
    outside = dict.fromkeys(reads, 0.0)
    shares: dict[str, dict[str, float]] = {name: {} for name in reads}
    for name, each in reads.items():
        for read in each:
            if read.producer in sources:
                outside[name] += read.rows_made * sources[read.producer]
            else:
                shares[read.producer][name] = read.rows_made
    written = {**sources, **rates_through(outside, shares)}
    return {name: sum(written[read.producer] for read in each) for name, each in reads.items()}


def _readers(reads: Reads, sources: Sources) -> dict[str, dict[str, float]]:
    """By producer, who reads it and what that makes of a row."""
    found: dict[str, dict[str, float]] = {name: {} for name in (*sources, *reads)}
    for name, each in reads.items():
        for read in each:
            found[read.producer][name] = read.rows_made
    return found


def _loops(reads: Reads) -> bool:
    """Whether a row may come back to a stage."""
    left = {name: {read.producer for read in each if read.producer in reads} for name, each in reads.items()}
    while first := {name for name, above in left.items() if not above & left.keys()}:
        left = {name: above for name, above in left.items() if name not in first}
    return bool(left)


def _worth(reads: Reads, readers: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """V, by the equations of rates with all edges turned round: it flows from the sinks upwards."""
    ends = {name: 0.0 if readers[name] else 1.0 for name in reads}
    back: dict[str, dict[str, float]] = {name: {} for name in reads}
    for name in reads:
        for each, made in readers[name].items():
            back[each][name] = made
    return rates_through(dict(reversed(ends.items())), back)
