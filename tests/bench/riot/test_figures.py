"""From steps to figures, table and pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bench.report import save_plot
from penstock.bench.result import BenchResult
from penstock.bench.riot.compare import Comparison, Job, Times
from penstock.bench.riot.figures import put_figures
from penstock.bench.riot.plots import plots_of
from penstock.bench.riot.steps import Curve, Step

TIMES = Times(warmup=1, settle=1, measured=1, rounds=1, refinements=0)


def step(rate: float, mean: float, queue_seconds: float = 0.1) -> Step:
    heavy = {
        "arrival": rate,
        "service": rate * 1.5,
        "queue_seconds": queue_seconds,
        "schedule_seconds": 0.1,
        "compute_seconds": 0.1,
    }
    light = {**heavy, "service": rate * 9, "queue_seconds": 0.1}
    return Step(
        rate=rate,
        mean=mean,
        p99=2 * mean,
        early_mean=mean,
        late_mean=mean,
        published_share=1.0,
        published_per_second=2 * rate,
        stages={"pred.parse": heavy, "pred.publish": light},
        scheduler_seconds=0.1,
        turn_seconds=10.0,
        utilisation_cv=rate / 1000,
        weight_cv=0.1,
        predicted_rate=rate * 1.1,
    )


def comparison(plain: Curve, **more: object) -> Comparison:
    job = Job("pred", {"plain": 1, "ours": 1}, (), (), False, TIMES)
    ours = Curve((step(100, 0.2), step(900, 0.5), step(1800, 3.0)))
    in_turn = [(step(60, 0.9, queue_seconds=0.4), step(60, 0.3, queue_seconds=0.1))]
    return Comparison(job, plain, ours, in_turn, **more)  # type: ignore[arg-type]


HELD = Curve((step(50, 0.4), step(60, 0.9), step(100, 2.0)))


def test_ratios_are_of_the_highest_rates_held_and_of_latency_at_the_rivals() -> None:
    result = BenchResult("riot")
    put_figures(result, {"pred": comparison(HELD, fused=Curve((step(2700, 0.5),)))})
    assert result.figures["pred_throughput_ratio"] == 15.0
    assert result.figures["pred_latency_ratio"] == pytest.approx(3.0)
    assert result.figures["pred_fused_ratio"] == 3.0
    assert result.figures["scheduler_share"] == pytest.approx(0.01)
    assert "notes" not in result.setup
    assert result.missed == []


def test_balance_is_told_at_the_rate_of_both_and_at_the_most_of_each() -> None:
    result = BenchResult("riot")
    pairs = [(step(100, 2.0, queue_seconds=0.4), step(100, 0.3, queue_seconds=0.1))]
    put_figures(result, {"pred": comparison(HELD, at_most=pairs)})
    told = {name: result.figures[name] for name in ("cv_low", "cv_high", "cv_rival_low", "cv_rival_high")}
    # Slow but keeping up: the last step of each side.
    assert told == {"cv_low": 0.06, "cv_high": 1.8, "cv_rival_low": 0.06, "cv_rival_high": 0.1}
    assert result.figures["rate_predicted_ratio"] == pytest.approx(1 / 1.1)
    # The heaviest stage has 0.1 of 0.2 s of ours, and 0.4 of 0.5 s of the rival's.
    assert result.figures["tq_share"] == pytest.approx(0.5 / 0.8)


def test_throughput_without_a_limit_and_turns_as_jobs_are_told_beside() -> None:
    result = BenchResult("riot")
    one = comparison(HELD, as_jobs=(Curve((step(300, 0.7),)), step(60, 0.45)))
    one.job = replace(one.job, beyond=True)
    put_figures(result, {"pred": one})
    assert result.figures["pred_unlimited_ratio"] == 18.0
    assert result.figures["pred_as_jobs_throughput_ratio"] == 5.0
    assert result.figures["pred_as_jobs_latency_ratio"] == pytest.approx(2.0)


def test_a_rival_that_holds_nothing_counts_with_the_least_rate_tried_and_that_is_said() -> None:
    result = BenchResult("riot")
    put_figures(result, {"pred": comparison(Curve((step(60, 1.7), step(30, 1.5))))})
    assert result.figures["pred_throughput_ratio"] == 30.0
    assert result.figures["pred_rate_rival"] == 0.0
    assert result.setup["notes"] == [
        "pred: the rival held no rate that was tried; the least of them, 30 rows/s, stands for its highest, "
        "so that the ratio is less than the true one"
    ]


def test_each_consumption_and_policy_has_its_highest_rate() -> None:
    result = BenchResult("riot")
    curves = {"half": Curve((step(500, 0.5),)), "at-most-10": Curve((step(20, 5.0),))}
    put_figures(
        result,
        {"pred": comparison(HELD, consumptions=curves, policies={"min-latency": Curve((step(700, 0.4),))})},
    )
    assert (result.figures["consumption_half"], result.figures["consumption_10"]) == (500, 0)
    assert result.figures["pred_rate_min_latency"] == 700
    sides = [row[1] for row in result.tables[0].rows]
    assert sides == [
        "plain Spark",
        "Penstock, longest-queue",
        "Penstock, min-latency",
        "Penstock, half",
        "Penstock, at-most-10",
    ]


def test_every_picture_can_be_drawn(tmp_path: Path) -> None:
    curves = {"all": Curve((step(500, 0.5),))}
    made = {"pred": comparison(HELD, consumptions=curves, fused=Curve((step(900, 0.2),)))}
    found = [save_plot(plot, tmp_path / "riot.json") for plot in plots_of(made)]
    assert [path.name for path in found] == [
        "riot-pred-latency.png",
        "riot-utilisation.png",
        "riot-times.png",
        "riot-pred-consumption.png",
    ]
    assert all(path.stat().st_size > 5000 for path in found)
