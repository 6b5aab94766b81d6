"""Latency at sinks over the last minute and between two looks, from histograms that only grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from penstock.dashboard.snapshot import LatencyPoint
from penstock.measure.histogram import LatencyHistogram
from penstock.spark.reports import SinkReport

MINUTE_SECONDS = 60.0
STEP_SECONDS = 5.0
POINT_SECONDS = 2.0
"""A point of a timeline stands for at least so long."""


@dataclass
class _Sink:
    kept: deque[tuple[float, LatencyHistogram]] = field(default_factory=deque)
    now: LatencyHistogram = field(default_factory=LatencyHistogram)
    minute: LatencyHistogram = field(default_factory=LatencyHistogram)
    target_seconds: float | None = None


class SinkWindows:
    """Keeps a copy of each sink's histogram every five seconds: a minute is what came since the oldest."""

    def __init__(self) -> None:
        self._sinks: dict[str, _Sink] = {}
        self._before: dict[str, LatencyHistogram] = {}
        self._point_at = float("-inf")

    def look(self, now: float, reports: Iterable[SinkReport]) -> None:
        """What has come to the sinks by `now`; those not named any more are forgotten."""
        sinks = {f"{each.pipeline}.{each.sink}": each for each in reports}
        for gone in self._sinks.keys() - sinks.keys():
            del self._sinks[gone]
            self._before.pop(gone, None)
        for name, report in sinks.items():
            self._look(now, self._sinks.setdefault(name, _Sink()), report)

    def _look(self, now: float, sink: _Sink, report: SinkReport) -> None:
        sink.target_seconds = report.target_seconds
        if report.latency.count < sink.now.count:
            sink.kept.clear()  # the pipeline was started anew
        if report.latency.count != sink.now.count:
            sink.now = report.latency.copy()
        if not sink.kept or now - sink.kept[-1][0] >= STEP_SECONDS:
            sink.kept.append((now, sink.now))
        while len(sink.kept) > 1 and now - sink.kept[1][0] >= MINUTE_SECONDS:
            sink.kept.popleft()
        _, first = sink.kept[0]
        # The very first look finds what came before it: that counts too while there is nothing else.
        whole = len(sink.kept) == 1 or first.count == 0
        sink.minute = sink.now if whole else _since(sink.now, first)

    @property
    def histograms(self) -> dict[str, LatencyHistogram]:
        """What has come to each sink since its pipeline was started, by the last look; not to be changed."""
        return {name: sink.now for name, sink in self._sinks.items()}

    def last_minute(self, name: str) -> LatencyHistogram:
        """What came to a sink in the last minute, or since the first look."""
        return self._sinks[name].minute

    def points(self, now: float) -> Iterator[LatencyPoint]:
        """A point for each sink that something came to since the points before, if that is long enough."""
        if now - self._point_at < POINT_SECONDS:
            return
        self._point_at = now
        for name, sink in self._sinks.items():
            before, self._before[name] = self._before.get(name), sink.now
            fresh = sink.now if before is None else _since(sink.now, before)
            if fresh.count:
                p50, p99 = fresh.quantiles(0.5, 0.99)
                yield LatencyPoint(now, name, p50, p99, fresh.count, sink.target_seconds)


def _since(now: LatencyHistogram, before: LatencyHistogram) -> LatencyHistogram:
    return now.since(before) if now is not before else LatencyHistogram()
