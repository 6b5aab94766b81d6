"""Many cases, each drawn by hypothesis by itself, for one call of Spark: that is what costs."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.operators.riot.inputs import ARRIVED, QUANTITIES, Row, is_close

Case = TypeVar("Case")
SEED = int(os.environ.get("PENSTOCK_SEED") or random.randrange(2**32))
EACH = 1000
"""Messages of case n have ids from n * EACH on."""

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
numbers = st.one_of(
    st.integers(0, 12).map(lambda number: number / 4),
    st.floats(0.0, 1e6),
    st.sampled_from((0.0, -0.0, 5e-324, 0.1, 22.0, 1e15, 1e300)),
)


def drawn(cases: st.SearchStrategy[Case], count: int = 60) -> list[Case]:
    """Others at every run; PENSTOCK_SEED=number gives those of the run that named that number."""
    found: list[Case] = []

    @seed(SEED)
    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def keep(case: Case) -> None:
        found.append(case)

    keep()
    return found


def by_case(rows: Iterable[Row], count: int, key: Callable[[Row], Any] = repr) -> list[list[Row]]:
    """Rows apart by the case that their message is of, each case in the order of `key`."""
    found: list[list[Row]] = [[] for _ in range(count)]
    for row in rows:
        found[row["msgid"] // EACH].append(row)
    return [sorted(each, key=key) for each in found]


def assert_each_close(cases: Sequence[Any], found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Of the cases that differ the shortest is told, and how to draw them again."""
    told = list(zip(cases, found, expected, strict=True))
    wrong = [each for each in told if not is_close(each[1], each[2])]
    if wrong:
        case, came, wanted = min(wrong, key=lambda each: len(repr(each[0])))
        raise AssertionError(
            f"{len(wrong)} of {len(cases)} cases differ, with PENSTOCK_SEED={SEED}; the shortest is\n{case}\n"
            f"found\n{came}\nexpected\n{wanted}"
        )


@st.composite
def series(draw: st.DrawFn) -> list[Row]:
    """Observations of up to three sensors, whose names may be anything; of two quantities, or the source."""
    sensors = st.sampled_from(draw(st.lists(names, min_size=1, max_size=3)))
    one = st.tuples(sensors, st.sampled_from((*QUANTITIES[:2], "source")), st.none() | numbers)
    several = draw(st.lists(one, min_size=1, max_size=9) | st.lists(one, min_size=25, max_size=60))
    return [{"sensor": sensor, "name": name, "value": value} for sensor, name, value in several]


def as_rows(cases: Sequence[Sequence[Row]], apart_by: str = "sensor") -> list[Row]:
    """The observations of all cases, numbered in order; no two cases share a value of `apart_by`."""
    return [
        {
            "arrived": ARRIVED, "time": 1000, "longitude": 6.5, "latitude": 46.25, "text": None,
            **row, apart_by: f"{number} {row[apart_by]}", "msgid": number * EACH + at,
        }
        for number, case in enumerate(cases)
        for at, row in enumerate(case)
    ]  # fmt: skip
