"""The tenants' jobs: urgent ones that want each second's result at once, and bulky ones that can wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.errors import PenstockError

Group = Literal["urgent", "bulk"]
GROUPS: tuple[Group, ...] = ("urgent", "bulk")
ArrivalName = Literal["constant", "pareto", "skewed", "bursts"]

URGENT_SOURCES, URGENT_ROWS = 64, 62
URGENT_TARGET_SECONDS, BULK_TARGET_SECONDS = 0.8, 7200.0
BULK_SOURCES = 4


@dataclass(frozen=True)
class Job:
    """One tenant's query and what comes in for it.

    Each source sends a message every `message_seconds`; `rows_per_second` is over all sources. A job that
    `starts_at` a later second has nothing to do before. `share` is its part of the tokens, where policies
    have any.
    """

    name: str
    group: Group
    query: str
    window_seconds: float
    target_seconds: float
    sources: int
    rows_per_second: float
    arrivals: ArrivalName = "constant"
    message_seconds: float = 1.0
    starts_at: float = 0.0
    share: float | None = None
    seed: int = 0
    slides: int | None = None
    """How many slides make a window; None for the query's own."""
    payload: bool = False
    """Whether its events come as text that the query parses."""

    def __post_init__(self) -> None:
        least = self.sources / self.message_seconds if self.message_seconds > 0 else 0.0
        if self.sources < 1 or self.message_seconds <= 0:
            raise PenstockError(
                f"job {self.name!r} must have a source that sends now and then, got {self.sources} sources, "
                f"every {self.message_seconds:g} s: no window would ever be complete"
            )
        if self.query == "ipq4" and self.slide_count > 1:
            raise PenstockError(
                f"job {self.name!r} must have windows that do not overlap for ipq4, got {self.slides} "
                "slides: its results are only checked for such"
            )
        if self.rows_per_second < least:
            raise PenstockError(
                f"job {self.name!r} must have a row in every message, {least:g} rows/s or more, "
                f"got {self.rows_per_second:g}: windows would wait for sources that send nothing"
            )

    @property
    def events_drawn(self) -> int:
        """How many different events its input goes round: about a minute's, from a thousand to 130,000."""
        wanted = max(int(self.rows_per_second * 60), 1)
        return int(min(max(1 << (wanted - 1).bit_length(), 1 << 10), 1 << 17))

    @property
    def slide_seconds(self) -> float:
        """How far windows lie apart."""
        return self.window_seconds / self.slide_count

    @property
    def slide_count(self) -> int:
        """Windows that a row falls into: two of IPQ2, one of the others, where nothing else is said."""
        return self.slides or (2 if self.query == "ipq2" else 1)


def urgent_jobs(
    count: int = 4, *, query: str = "ipq1", arrivals: ArrivalName = "constant", seed: int = 1
) -> tuple[Job, ...]:
    """Latency-sensitive ones: 1 s windows, 64 sources with a message of 62 events a second each, 800 ms."""
    rate = URGENT_SOURCES * URGENT_ROWS
    return tuple(
        Job(
            name=f"urgent-{number}",
            group="urgent",
            query=query,
            window_seconds=1.0,
            target_seconds=URGENT_TARGET_SECONDS,
            sources=URGENT_SOURCES,
            rows_per_second=rate,
            arrivals=arrivals,
            seed=seed * 1000 + number,
        )
        for number in range(1, count + 1)
    )


def bulk_jobs(
    rows_per_second: float,
    count: int = 4,
    *,
    arrivals: ArrivalName = "constant",
    seed: int = 2,
    sliding: bool = False,
) -> tuple[Job, ...]:
    """Bulky ones that share a rate: counts of every 10 s, and two hours to deliver them.

    Their events come as text: of rows that need not be parsed two cores could not feed as many as they can
    count. `sliding` meets that in another way: the last 10 s, counted every second, of rows that are parsed.
    """
    return tuple(
        Job(
            name=f"bulk-{number}",
            group="bulk",
            query="ipq3",
            window_seconds=10.0,
            target_seconds=BULK_TARGET_SECONDS,
            sources=BULK_SOURCES,
            rows_per_second=rows_per_second / count,
            arrivals=arrivals,
            seed=seed * 1000 + number,
            slides=10 if sliding else None,
            payload=not sliding,
        )
        for number in range(1, count + 1)
    )
