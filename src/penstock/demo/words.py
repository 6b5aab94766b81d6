"""How figures are written in tables, in the terminal and in the report alike."""

from __future__ import annotations

import math

NOTHING = "–"


def seconds(value: float) -> str:
    """Three digits, in the unit that suits.

    >>> [seconds(value) for value in (0.0534, 0.8, 2.64, 26.04, 60.0, math.nan)]
    ['53 ms', '800 ms', '2.64 s', '26.0 s', '60.0 s', '–']
    """
    if not math.isfinite(value):
        return NOTHING
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def target(value: float) -> str:
    """
    >>> target(0.8), target(60.0)
    ('800 ms', '60 s')
    """
    return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"


def share(value: float) -> str:
    """
    >>> share(0.97), share(0.9996), share(1.0), share(math.nan)
    ('97 %', '99.9 %', '100 %', '–')
    """
    if not math.isfinite(value):
        return NOTHING
    if 0.99 < value < 1:
        return f"{math.floor(value * 1000) / 10:.1f} %"
    return f"{math.floor(value * 100):.0f} %"


def rows(count: int) -> str:
    """
    >>> rows(25_000), rows(27_600_000), rows(0)
    ('25,000', '27.6 M', '0')
    """
    return f"{count / 1e6:.1f} M" if count >= 1_000_000 else f"{count:,}"


def times(ratio: float) -> str:
    """How many times one is the other.

    >>> times(7.34), times(23.4), times(1.01)
    ('7.3 times', '23 times', '1.0 times')
    """
    if not math.isfinite(ratio):
        return NOTHING
    return f"{ratio:.0f} times" if ratio >= 20 else f"{ratio:.1f} times"
