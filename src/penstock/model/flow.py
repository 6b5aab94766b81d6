"""Which stages read from which, and how often an input passes each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.model.traffic import rates_through

OUTSIDE = ""
"""The producer of rows that come from outside."""


class Read(NamedTuple):
    """A stage reads what a producer writes, and makes so many rows of each."""

    producer: str
    rows_made: float


Reads = Mapping[str, tuple[Read, ...]]
"""By stage. One that nobody reads brings its rows to a sink."""


def visits(reads: Reads) -> dict[str, float]:
    """How often a row that comes to a sink has passed each stage, on its way from outside.

    That is what an input pays: rows that share turns pay once, however many they are, and those that
    are dropped pay nothing. With V(i), the rows that come to a sink of one that stage i has written, a row
    of i goes on through reader j with the chance rows_made V(j) / V(i). Empty where nothing comes to a sink.

    >>> both = {"read": (Read("", 1.0),), "left": (Read("read", 0.5),), "right": (Read("read", 0.5),)}
    >>> visits(both)
    {'read': 1.0, 'left': 0.5, 'right': 0.5}
    """
    readers = _readers(reads)
    worth = _worth(reads, readers)
    first = {name: made * worth[name] for name, made in readers[OUTSIDE].items()}
    if not sum(first.values()) > 0.0:
        return {}
    outside = {name: first.get(name, 0.0) / sum(first.values()) for name in reads}
    onwards = {
        name: {each: made * worth[each] / worth[name] for each, made in readers[name].items()}
        for name in reads
        if readers[name] and worth[name] > 0.0
    }
    return rates_through(outside, onwards)


def rates_of(reads: Reads, outside_per_second: float) -> dict[str, float]:
    """How fast rows come to each stage, if all of them keep up.

    >>> rates_of({"read": (Read("", 2.0),), "match": (Read("read", 1.0), Read("match", 0.5))}, 10.0)
    {'read': 10.0, 'match': 60.0}
    """
    outside = dict.fromkeys(reads, 0.0)
    shares: dict[str, dict[str, float]] = {name: {} for name in reads}
    for name, each in reads.items():
        for read in each:
            if read.producer == OUTSIDE:
                outside[name] += read.rows_made * outside_per_second
            else:
                shares[read.producer][name] = read.rows_made
    written = {OUTSIDE: outside_per_second, **rates_through(outside, shares)}
    return {name: sum(written[read.producer] for read in each) for name, each in reads.items()}


def _readers(reads: Reads) -> dict[str, dict[str, float]]:
    """By producer, who reads it and what that makes of a row."""
    found: dict[str, dict[str, float]] = {OUTSIDE: {}, **{name: {} for name in reads}}
    for name, each in reads.items():
        for read in each:
            found[read.producer][name] = read.rows_made
    return found


def _worth(reads: Reads, readers: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """V, by the equations of rates with all edges turned round: it flows from the sinks upwards."""
    ends = {name: 0.0 if readers[name] else 1.0 for name in reads}
    back: dict[str, dict[str, float]] = {name: {} for name in reads}
    for name in reads:
        for each, made in readers[name].items():
            back[each][name] = made
    return rates_through(dict(reversed(ends.items())), back)
