"""Keeps the latency at every sink, ten seconds at a time, where `penstock report` finds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.measure.histogram import LatencyHistogram
from penstock.measure.minutes import SinkSpan
from penstock.spark.kept_lines import KeptLines
from penstock.spark.reports import SinkReport, sink_reports
from penstock.spark.running import RunningPipeline

SPAN_SECONDS = 10.0


class SinkSpans:
    """Looks at the sinks now and then, and writes down what came since it last did."""

    def __init__(self, lines: KeptLines, now: float):
        self._lines = lines
        self._begin = now
        self._before: dict[tuple[str, str], LatencyHistogram] = {}

    def look(self, now: float, pipelines: Iterable[RunningPipeline], *, last: bool = False) -> None:
        """At the `last` look the span need not be over."""
        if now - self._begin >= SPAN_SECONDS or last:
            self._lines.add(each.to_json() for each in self._spans(now, tuple(pipelines)))
            self._begin = now

    def _spans(self, now: float, pipelines: tuple[RunningPipeline, ...]) -> Iterator[SinkSpan]:
        for running in pipelines:
            for report in sink_reports([running]):
                fresh = self._fresh(report)
                if fresh.count:
                    target = report.target_seconds
                    yield SinkSpan(
                        self._begin,
                        now,
                        report.pipeline,
                        report.sink,
                        running.pipeline.tenant.name,
                        target,
                        fresh.count,
                        1.0 if target is None else fresh.share_within(target),
                        fresh.quantile(0.5),
                        fresh.quantile(0.99),
                    )

    def _fresh(self, report: SinkReport) -> LatencyHistogram:
        key = report.pipeline, report.sink
        now = report.latency.copy()
        before = self._before.get(key)
        self._before[key] = now
        # A pipeline that was started anew counts from nothing.
        return now if before is None or now.count < before.count else now.since(before)
