"""A run as its state directory tells of it, and what is read from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from penstock.measure.changes import Change
from penstock.measure.minutes import SinkSpan, StageMinute
from penstock.measure.promises import ENOUGH_IN_TIME
from penstock.measure.turns import KeptTurn

GAP_SECONDS = 300.0
"""Where nothing is kept for so long, one run ended and another began."""


@dataclass(frozen=True)
class SinkTotal:
    """A sink over the whole run; its target is the last it had."""

    name: str
    tenant: str
    target_seconds: float | None
    results: float
    in_time: float
    p50: float
    p99: float
    """The worst of any ten seconds; p50 is the median of all ten seconds."""

    @property
    def kept(self) -> bool:
        return self.target_seconds is None or self.in_time >= ENOUGH_IN_TIME


@dataclass(frozen=True)
class RunRecord:
    """What is kept of the last run in a state directory."""

    name: str
    minutes: Sequence[StageMinute] = ()
    spans: Sequence[SinkSpan] = ()
    turns: Sequence[KeptTurn] = ()
    changes: Sequence[Change] = ()
    failures: Mapping[str, str] = field(default_factory=dict)

    def last_run(self) -> RunRecord:
        """Without what is kept of runs before."""
        times = sorted([*(each.begin for each in self.minutes), *(each.end for each in self.spans)])
        begin = times[0] if times else 0.0
        for before, after in pairwise(times):
            if after - before > GAP_SECONDS:
                begin = after
        return RunRecord(
            self.name,
            [each for each in self.minutes if each.begin >= begin],
            [each for each in self.spans if each.end >= begin],
            [each for each in self.turns if each.at >= begin - GAP_SECONDS],
            [each for each in self.changes if each.at >= begin - GAP_SECONDS],
            self.failures,
        )

    @cached_property
    def begin(self) -> float:
        known = [*(each.begin for each in self.spans), *(each.begin for each in self.minutes)]
        return min(known, default=0.0)

    @cached_property
    def end(self) -> float:
        known = [each.end for each in self.spans]
        known += [each.begin + each.figures.seconds for each in self.minutes]
        return max(known, default=0.0)

    @property
    def stages(self) -> list[str]:
        """Their names, in the order they first come."""
        return list(dict.fromkeys(each.stage for each in self.minutes))

    def sinks(self) -> list[SinkTotal]:
        """Each sink over the whole run, the worst first."""
        by: dict[str, list[SinkSpan]] = {}
        for span in self.spans:
            by.setdefault(f"{span.pipeline}.{span.sink}", []).append(span)
        totals = [_total(name, spans) for name, spans in by.items()]
        return sorted(totals, key=lambda each: (each.kept, each.in_time))

    def verdict(self) -> str:
        """One sentence on how it went."""
        if self.failures:
            failed = ", ".join(sorted(self.failures))
            return f"A pipeline has stopped by an error: {failed}."
        aimed = [sink for sink in self.sinks() if sink.target_seconds is not None]
        if not aimed:
            return "No result came to a sink with a target."
        kept = sum(sink.kept for sink in aimed)
        if kept == len(aimed):
            return (
                f"All {kept} targets were kept: 95% of the results or more came in time."
                if kept > 1
                else ("The target was kept: 95% of the results or more came in time.")
            )
        worst = aimed[0]
        return (
            f"{kept} of {len(aimed)} targets were kept. Worst was {worst.name}: "
            f"{worst.in_time:.0%} of its results came in time."
        )


def _total(name: str, spans: Sequence[SinkSpan]) -> SinkTotal:
    results = sum(span.results for span in spans)
    ordered = sorted(span.p50 for span in spans)
    return SinkTotal(
        name,
        spans[-1].tenant,
        spans[-1].target_seconds,
        results,
        sum(span.in_time * span.results for span in spans) / results if results else 1.0,
        ordered[len(ordered) // 2],
        max(span.p99 for span in spans),
    )
