"""Lengths of time as people write them: "800ms", "2s", "1 minute", timedelta, seconds."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from penstock.errors import PenstockError

Duration = str | timedelta | float

_SECONDS = {
    "us": 1e-6, "microsecond": 1e-6, "microseconds": 1e-6,
    "ms": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
    "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0,
}  # fmt: skip
_NUMBER_AND_UNIT = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)")


class DurationError(PenstockError, ValueError):
    """A length of time that cannot be used; `value` is what was given."""

    def __init__(self, text: str, value: object) -> None:
        super().__init__(text)
        self.value = value

    def __reduce__(self) -> tuple[type[DurationError], tuple[str, object]]:
        return type(self), (str(self), self.value)


def parse_latency(target: Duration) -> float:
    """Seconds of a latency target, which must be positive.

    >>> parse_latency("800ms")
    0.8
    """
    return parse_positive(target, "latency target", "no turn could ever meet it")


def parse_positive(value: Duration, subject: str, consequence: str) -> float:
    """Seconds of a length of time above zero; the error names `subject` and ends with `consequence`."""
    seconds = parse_seconds(value, subject)
    if seconds <= 0:
        raise DurationError(
            f"{subject} must be positive, got {format_seconds(seconds)}: {consequence}", value
        )
    return seconds


def parse_not_negative(value: Duration, subject: str, consequence: str) -> float:
    """Seconds of a length of time of zero or more."""
    seconds = parse_seconds(value, subject)
    if seconds < 0:
        raise DurationError(
            f"{subject} must not be negative, got {format_seconds(seconds)}: {consequence}", value
        )
    return seconds


def parse_seconds(value: Duration, subject: str) -> float:
    """Seconds of any length of time; a bare number is seconds, a bare number in a string is refused."""
    seconds = _seconds(value)
    if seconds is None or not math.isfinite(seconds):
        raise DurationError(
            f'{subject} must be a number with a unit ("800ms", "2s", "1m"), a timedelta or seconds, '
            f"got {value!r}: it names no length of time",
            value,
        )
    return seconds


def format_seconds(seconds: float) -> str:
    """A length of time for people.

    >>> format_seconds(0.8), format_seconds(2)
    ('800 ms', '2 s')
    """
    return f"{seconds:g} s" if abs(seconds) >= 1 else f"{seconds * 1000:g} ms"


def _seconds(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and (match := _NUMBER_AND_UNIT.fullmatch(value.strip().lower())):
        unit = _SECONDS.get(match[2])
        # Division keeps "800ms" at exactly 0.8, where 800 * 0.001 is not.
        return None if unit is None else _scaled(float(match[1]), unit)
    return None


def _scaled(number: float, unit: float) -> float:
    return number / round(1 / unit) if unit < 1 else number * unit
