"""The figures of `penstock bench share`, from runs made by hand."""

import argparse
import math
from pathlib import Path

import pytest
from tests.workloads.recorded import recorded_run

from penstock.bench.result import BenchSettings
from penstock.bench.share import QUICK, chosen_plan, figures, result_of


def test_ratios_are_the_rivals_over_ours() -> None:
    runs = {"spark": recorded_run("spark", 4.0), "fair": recorded_run("fair", 1.0)}
    told = figures({**runs, "penstock": recorded_run("penstock", 0.25)})
    assert told["p50_ratio_fifo"] == pytest.approx(16.0)
    assert told["p50_ratio_fair"] == pytest.approx(4.0)
    assert told["p99_s_ours"] == pytest.approx(0.25)
    assert "p50_ratio_tuned" not in told


def test_bulk_rows_are_compared_with_the_better_rival() -> None:
    slow, better, ours = (
        recorded_run(*each) for each in (("spark", 12.0), ("fair", 2.0), ("penstock", 0.25))
    )
    told = figures({"spark": slow, "fair": better, "penstock": ours})
    wanted = ours.group("bulky").share_done / better.group("bulky").share_done
    assert told["bulk_rows_ratio"] == wanted
    assert told["bulk_rows_fifo"] < told["bulk_rows_fair"]


def test_sides_without_a_row_have_no_ratio_and_miss_the_mark() -> None:
    runs = {key: recorded_run(key, 99.0) for key in ("spark", "fair", "penstock")}
    result = result_of(runs, QUICK)
    assert math.isnan(result.figures["bulk_rows_ratio"])
    assert "bulk_rows_ratio" in result.missed


def test_a_result_has_marks_a_table_and_two_plots() -> None:
    runs = {
        key: recorded_run(key, latency)
        for key, latency in (("spark", 4.0), ("fair", 1.0), ("penstock", 0.25))
    }
    result = result_of(runs, QUICK)
    assert sorted(result.marks) == ["bulk_rows_ratio", "p50_ratio_fifo", "p99_ratio_fair", "p99_ratio_fifo"]
    assert [plot.name for plot in result.plots] == ["time", "distribution"]
    assert len(result.tables[0].rows) == 6
    assert result.setup["measured_seconds"] == QUICK.measured_seconds


def test_the_times_can_be_chosen() -> None:
    asked = argparse.Namespace(warmup=1.0, measured=None)
    plan = chosen_plan(BenchSettings(True, Path("share.json"), asked))
    assert (plan.warmup_seconds, plan.measured_seconds) == (1.0, QUICK.measured_seconds)
