"""What a burst shows: memory that grew, and rows that are missing."""

from __future__ import annotations

from dataclasses import replace

from penstock.bench.riot.burst import Burst

FLAT = Burst(
    rate=2000,
    seconds=300,
    memory_mb=tuple((at * 15.0, 1500.0 + at % 2 * 20) for at in range(20)),
    most_waiting=300_000,
    fed=600_000,
    out=600_000,
    expected=600_000,
    received=600_000,
    drain_seconds=250,
)


def test_memory_that_goes_up_and_down_has_not_grown() -> None:
    assert FLAT.growth_mb == 0.0


def test_memory_that_rises_has_grown_by_the_difference_of_its_ends() -> None:
    rising = tuple((at * 15.0, 1000.0 + 10 * at) for at in range(20))
    assert replace(FLAT, memory_mb=rising).growth_mb == 150.0


def test_a_row_is_lost_where_it_was_not_published_or_not_received() -> None:
    assert FLAT.lost == 0
    assert replace(FLAT, out=599_990).lost == 10
    assert replace(FLAT, out=600_003).doubled == 3
    assert replace(FLAT, received=599_999).lost == 1
    # At least once: more than is due is no loss.
    assert replace(FLAT, received=600_500).lost == 0
