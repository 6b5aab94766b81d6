"""Window aggregation: its settings, checked when declared, and the function Spark runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from penstock.pipeline.latency import Duration, format_seconds, parse_not_negative, parse_positive
from penstock.pipeline.nodes import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def window_settings(
    on: str,
    size: Duration,
    slide: Duration | None,
    late: Duration,
    by: str | Sequence[str],
    aggregate: str | Column | Sequence[str | Column],
) -> Window:
    """The settings in seconds and tuples; raises ValueError where they contradict each other."""
    size_seconds = parse_positive(size, "window size", "no row could fall into it")
    slide_seconds = (
        size_seconds if slide is None else parse_positive(slide, "slide", "windows would never move on")
    )
    late_seconds = parse_not_negative(late, "lateness", "a window cannot close before its end")
    if slide_seconds > size_seconds:
        raise ValueError(
            f"slide must not exceed the window size of {format_seconds(size_seconds)}, "
            f"got {format_seconds(slide_seconds)}: rows between two windows would be lost"
        )
    keys = (by,) if isinstance(by, str) else tuple(by)
    if "window" in keys:
        raise ValueError(
            "by must not contain 'window', got it: the window itself is the output column of that name"
        )
    aggregates = tuple(map(str, as_tuple(aggregate)))
    if not aggregates:
        raise ValueError(
            "aggregate must have at least one expression, got none: the windows would carry no result"
        )
    return Window(on, size_seconds, slide_seconds, late_seconds, keys, aggregates)


def as_tuple(aggregate: str | Column | Sequence[str | Column]) -> tuple[str | Column, ...]:
    """Aggregates as a tuple; one alone, a string or a Column, stands for itself."""
    # A Column answers to iter() as well, so that a sequence is not told by trying.
    if isinstance(aggregate, (list, tuple)):
        return tuple(aggregate)
    return (cast("str | Column", aggregate),)


def window_function(window: Window, aggregates: tuple[str | Column, ...]) -> Callable[[DataFrame], DataFrame]:
    """A function whose result has the struct `window` (start, end), the keys, then the aggregates."""

    def aggregate_windows(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        frame = F.window(window.on, interval(window.size_seconds), interval(window.slide_seconds))
        columns = [F.expr(each) if isinstance(each, str) else each for each in aggregates]
        timed = rows.withWatermark(window.on, interval(window.late_seconds))
        return timed.groupBy(frame, *window.by).agg(*columns)

    return aggregate_windows


def interval(seconds: float) -> str:
    """A length of time as Spark reads it."""
    return f"{round(seconds * 1_000_000)} microseconds"
