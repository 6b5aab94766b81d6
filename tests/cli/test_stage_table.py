"""The tables of `penstock run`, as a terminal of some width shows them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from penstock.cli.stage_table import run_tables, summary_line
from penstock.measure.congestion import Congestion, congestion_of
from penstock.measure.histogram import LatencyHistogram
from penstock.measure.stage_meter import StageMeter
from penstock.scheduling.running_turns import CutCount
from penstock.spark.reports import SinkReport, StageReport, TenantReport

NOTHING = StageMeter(0.0).figures(60.0)
BUSY = replace(
    NOTHING,
    rows_waiting=1_234_567,
    turns=200,
    rows_in=6_000,
    total_turns=12_345,
    total_rows_in=9_876_543,
    arrival_rows_per_second=1500.0,
    service_rows_per_second=4000.0,
    service_rows_per_slot_second=4000.0,
    slot_seconds=45.0,
    selectivity=0.25,
    utilisation=0.97,
    queue_seconds=12.345,
    schedule_seconds=1.234,
    compute_seconds=0.045,
)


@dataclass
class StandingEngine:
    """An engine that stands still: two stages, the second with a sink."""

    stage_reports: list[StageReport] = field(
        default_factory=lambda: [
            StageReport("p", "p.parse", "direct", BUSY, 0, 0),
            StageReport("p", "p.publish", "direct", NOTHING, 0, 0),
        ]
    )
    cuts: CutCount = field(default_factory=lambda: CutCount(made=40, overran=3))

    def stages(self) -> list[StageReport]:
        return self.stage_reports

    def sinks(self) -> list[SinkReport]:
        latency = LatencyHistogram()
        latency.add(0.5, 10)
        return [SinkReport("p", "out", "exactly once", 1.0, latency)]

    def tenants(self) -> list[TenantReport]:
        latency = LatencyHistogram()
        latency.add(0.5, 95)
        latency.add(0.9, 5)
        sink = SinkReport("p", "out", "exactly once", 0.8, latency)
        return [TenantReport("ads", 0.8, None, (sink,), 12.5, 600)]

    def congestion(self) -> dict[str, Congestion]:
        figures = {report.stage: report.figures for report in self.stage_reports}
        return {"p": congestion_of(figures, 2, {"p.parse"}), "idle": congestion_of({}, 2, ())}


class Graph:
    def stage(self, name: str) -> Any:
        return SimpleNamespace(sink=SimpleNamespace(name="out") if name == "p.publish" else None)


ENGINE = cast(Any, StandingEngine())
RUNNING = cast(Any, [SimpleNamespace(name="p", state="running", graph=Graph())])


def shown(width: int, name: str) -> list[str]:
    """The lines that begin with a name, with one space between the cells."""
    console = Console(width=width)
    with console.capture() as capture:
        console.print(run_tables(ENGINE, RUNNING))
    lines = [" ".join(line.split()) for line in capture.get().splitlines()]
    return [line for line in lines if line.startswith(f"{name} ")]


@pytest.mark.parametrize("width", [120, 160])
def test_a_stage_is_one_line_with_its_rates_times_and_share(width: int) -> None:
    assert shown(width, "p.parse") == [
        "p.parse 1,234,567 12,345 9,876,543 1,500 4,000 0.25 0.75 97% 12345 1234 45",
        "p.parse 0.75 1.00 1.00 0.75",
    ]


def test_what_is_not_known_is_left_empty() -> None:
    assert shown(140, "p.publish") == ["p.publish 0 0 0 0 0.00 0% 0 0 0 0.500 0.500 1 100.0%"]
    assert shown(140, "idle") == ["idle 0.00 of 2"]


def test_a_pipeline_is_told_its_highest_rate_and_how_even_it_is() -> None:
    assert shown(140, "p") == ["p running", "p 1,500 8,000 0.75 of 2 1.00 0.00"]


def test_a_tenant_is_told_what_it_got_and_what_it_took() -> None:
    assert shown(140, "ads") == ["ads 0.8 100 95.0% 0.500 0.888 12.5"]


def test_turns_that_were_cut_for_others_are_told() -> None:
    assert shown(140, "40 turns") == [
        "40 turns were cut for others; 3 of them (7.5%) took longer than predicted"
    ]
    never = cast(Any, StandingEngine(cuts=CutCount()))
    assert len(run_tables(never, RUNNING).renderables) == 4


def test_without_a_terminal_one_line_tells_of_all() -> None:
    assert summary_line(ENGINE, RUNNING) == "p running: 12,345 turns, 1,234,567 rows waiting"
