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
from penstock.bench.riot.predict import predicted_rate
from penstock.bench.riot.steps import Curve, Step

TIMES = Times(warmup=1, settle=1, measured=1, rounds=1, refinements=0)


def step(rate: float, mean: float, queue_seconds: float = 0.1) -> Step:
    heavy = {
        "arrival": rate,
        "waiting_early": 5.0,
        "waiting_late": 5.0,
        "queue_seconds": queue_seconds,
        "schedule_seconds": 0.1,
        "compute_seconds": 0.1,
        # A turn of n rows takes 0.05 s and 0.5 ms a row, and there are two of them a second.
        "turns": 16.0,
        "rows_in": 8 * rate,
        "slot_seconds": 16 * 0.05 + 8 * rate * 0.0005,
        "path_share": 1.0,
    }
    light = {**heavy, "queue_seconds": 0.1, "slot_seconds": 16 * 0.05}
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
    job = Job("pred", {"plain": 1, "ours": 1}, (), (), False, TIMES, balance=True)
    ours = Curve((step(100, 0.2), step(400, 0.3), step(900, 0.5), step(1800, 3.0)))
    in_turn = [(step(60, 0.9, queue_seconds=0.4), step(60, 0.3, queue_seconds=0.1))]
    return Comparison(job, plain, ours, in_turn, **more)  # type: ignore[arg-type]


HELD = Curve((step(50, 0.4), step(60, 0.9), step(100, 2.0)))


def test_ratios_are_of_the_highest_rates_held_and_of_latency_at_the_rivals() -> None:
    result = BenchResult("riot")
    one = comparison(HELD, fused=Curve((step(2700, 0.5),)))
    one.job = replace(one.job, balance=False)
    put_figures(result, {"pred": one})
    assert result.figures["pred_throughput_ratio"] == 15.0
    assert result.figures["pred_latency_ratio"] == pytest.approx(3.0)
    assert result.figures["pred_fused_ratio"] == 3.0
    assert result.figures["scheduler_share"] == pytest.approx(0.01)
    assert result.setup["notes"] == [
        "cv_*, weight_cv, rate_predicted_ratio and tq_share were not measured: they are told by part balance "
        "of pred"
    ]
    assert result.missed == []


def test_a_pair_in_which_ours_published_nothing_counts_against_it() -> None:
    result = BenchResult("riot")
    one = comparison(HELD)
    one.in_turn = [(step(60, 0.9), step(60, 0.0))]
    put_figures(result, {"pred": one})
    assert result.figures["pred_latency_ratio"] == 0.0
    assert "pred_latency_ratio" in result.missed


def test_a_pair_in_which_the_rival_published_nothing_tells_no_latency() -> None:
    result = BenchResult("riot")
    one = comparison(HELD)
    one.in_turn = [(step(60, 0.0), step(60, 0.3)), (step(60, 0.9), step(60, 0.3))]
    put_figures(result, {"pred": one})
    assert result.figures["pred_latency_ratio"] == pytest.approx(3.0)
    one.in_turn = one.in_turn[:1]
    missing = BenchResult("riot")
    put_figures(missing, {"pred": one})
    assert "pred_latency_ratio" in missing.missed


def test_the_schedulers_share_is_that_of_all_held_steps_together() -> None:
    result = BenchResult("riot")
    one = comparison(HELD)
    idle = replace(step(100, 0.2), scheduler_seconds=0.1, turn_seconds=1.0, scheduler_cpu_seconds=0.06)
    failed = replace(step(1800, 3.0), scheduler_seconds=9.0)
    one.ours = Curve((idle, replace(step(900, 0.5), scheduler_seconds=0.1, turn_seconds=19.0), failed))
    put_figures(result, {"pred": one})
    assert result.figures["scheduler_share"] == pytest.approx(0.2 / 20)
    assert result.figures["scheduler_cpu_share"] == pytest.approx(0.06 / 20)


def balanced(low: float, high: float, rival_low: float, rival_high: float) -> Comparison:
    """A comparison with these coefficients of variation of utilisation."""

    def pair(rate: float, plain: float, own: float) -> tuple[Step, Step]:
        return replace(step(rate, 2.0), utilisation_cv=plain), replace(step(rate, 0.5), utilisation_cv=own)

    overloaded = {
        name: [replace(step(1200, 3.0), weight_cv=cv)]
        for name, cv in (("longest-queue", 0.2), ("random", 0.6))
    }
    return comparison(
        HELD, low=[pair(6, rival_low, low)], high=[pair(900, rival_high, high)], overloaded=overloaded
    )


def test_the_variation_of_utilisation_must_fall_in_ours_and_rise_in_the_rival() -> None:
    result = BenchResult("riot")
    put_figures(result, {"pred": balanced(low=0.5, high=0.2, rival_low=0.1, rival_high=0.4)})
    told = {name: result.figures[name] for name in ("cv_low", "cv_high", "cv_rival_low", "cv_rival_high")}
    assert told == {"cv_low": 0.5, "cv_high": 0.2, "cv_rival_low": 0.1, "cv_rival_high": 0.4}
    assert [name for name in result.missed if name.startswith("cv")] == []
    assert "cv_all_low" not in result.figures
    worse = BenchResult("riot")
    put_figures(worse, {"pred": balanced(low=0.5, high=0.5, rival_low=0.4, rival_high=0.1)})
    assert [name for name in worse.missed if name.startswith("cv")] == ["cv_high", "cv_rival_high"]


def test_the_highest_rate_is_not_compared_with_a_prediction_where_rates_were_given() -> None:
    one = balanced(0.5, 0.2, 0.1, 0.4)
    one.job = replace(one.job, rates=(6.0, 900.0))
    result = BenchResult("riot")
    put_figures(result, {"pred": one})
    assert "rate_predicted_ratio" not in {*result.figures, *result.marks}
    assert result.figures["weight_cv"] == 0.2


def test_utilisation_with_turns_that_take_all_that_waits_is_told_beside() -> None:
    result = BenchResult("riot")
    one = balanced(0.5, 0.2, 0.1, 0.4)
    one.whole = [replace(step(6, 0.2), utilisation_cv=0.3), replace(step(900, 0.5), utilisation_cv=0.6)]
    put_figures(result, {"pred": one})
    assert (result.figures["cv_all_low"], result.figures["cv_all_high"]) == (0.3, 0.6)
    assert (result.figures["cv_low"], result.figures["cv_high"]) == (0.5, 0.2)


def test_weights_are_told_where_the_rate_is_too_much_and_beside_those_of_chance() -> None:
    result = BenchResult("riot")
    put_figures(result, {"pred": balanced(0.5, 0.2, 0.1, 0.4)})
    assert (result.figures["weight_cv"], result.figures["weight_cv_random"]) == (0.2, 0.6)
    assert result.figures["weight_cv_held"] == 0.1


def test_the_highest_rate_is_predicted_from_turns_at_lower_rates_only() -> None:
    one = comparison(HELD)
    expected = predicted_rate(one.ours, 2)
    assert expected is not None
    # At the rates above 60% of the highest, turns may cost what they like.
    cheap = {name: {**each, "slot_seconds": 0.1} for name, each in step(900, 0.5).stages.items()}
    other = Curve((*one.ours.steps[:2], replace(step(900, 0.5), stages=cheap)))
    assert predicted_rate(other, 2) == expected
    # Less than 1 s at both stages: each has turns of at most 0.5 s or so; a slot takes 2,000 rows/s at most.
    assert 1000 < expected < 2000
    result = BenchResult("riot")
    put_figures(result, {"pred": one})
    # The rounds at the rival's rate tell what turns cost, too.
    expected = predicted_rate(Curve((one.in_turn[0][1], *one.ours.steps)), 2)
    assert expected is not None
    assert result.figures["rate_predicted_ratio"] == pytest.approx(900 / expected)
    assert result.figures["pool_busy"] == pytest.approx(1 / 1.1)


def test_without_two_lower_rates_nothing_is_predicted_and_the_mark_is_missed() -> None:
    one = comparison(HELD)
    one.ours, one.in_turn = Curve(one.ours.steps[1:]), [(step(60, 0.9), step(60, 3.0))]
    result = BenchResult("riot")
    put_figures(result, {"pred": one})
    assert "rate_predicted_ratio" not in result.figures
    assert "rate_predicted_ratio" in result.missed


def test_the_heaviest_stages_part_of_queue_time_is_ours_over_the_rivals() -> None:
    result = BenchResult("riot")
    pairs = [(step(100, 2.0, queue_seconds=0.4), step(100, 0.3, queue_seconds=0.1))]
    put_figures(result, {"pred": comparison(HELD, at_most=pairs)})
    # Until rows are taken: 0.2 of 0.4 s of ours, 0.5 of 0.7 s of the rival's.
    # In T_Q alone: 0.1 of 0.2 s, 0.4 of 0.5 s.
    assert result.figures["tq_share"] == pytest.approx(0.5 / (5 / 7))
    assert result.figures["tq_share_strict"] == pytest.approx(0.5 / 0.8)
    assert result.figures["tq_seconds_ratio"] == pytest.approx(0.4)
    even = BenchResult("riot")
    put_figures(even, {"pred": comparison(HELD, at_most=[(step(100, 2.0), step(100, 0.3))])})
    assert even.figures["tq_share"] == 1.0
    assert "tq_share" in even.missed


def test_throughput_without_a_limit_and_turns_as_jobs_are_told_beside() -> None:
    result = BenchResult("riot")
    one = comparison(HELD, as_jobs=(Curve((step(300, 0.7),)), [(step(60, 0.9), step(60, 0.45))]))
    one.job = replace(one.job, beyond=True)
    put_figures(result, {"pred": one})
    assert result.figures["pred_unlimited_ratio"] == 18.0
    assert result.figures["pred_as_jobs_throughput_ratio"] == 5.0
    assert result.figures["pred_as_jobs_latency_ratio"] == pytest.approx(2.0)
    one.policies = {"longest-queue": Curve((step(3600, 0.4),))}
    put_figures(result, {"pred": one})
    assert result.figures["pred_unlimited_ratio"] == 36.0


def test_a_rival_that_holds_nothing_counts_with_the_least_rate_tried_and_that_is_said() -> None:
    result = BenchResult("riot")
    put_figures(result, {"pred": comparison(Curve((step(60, 1.7), step(30, 1.5))))})
    assert result.figures["pred_throughput_ratio"] == 30.0
    assert result.figures["pred_rate_rival"] == 0.0
    assert result.setup["notes"][:1] == [
        "pred: the rival held no rate that was tried; the least of them, 30 rows/s, stands for its highest, "
        "so that the ratio is less than the true one"
    ]


def test_each_consumption_and_policy_has_its_highest_rate() -> None:
    result = BenchResult("riot")
    curves = {
        "half": Curve((step(500, 0.5),)),
        "at-most-10": Curve((step(20, 5.0),)),
        "at-most-500": Curve((step(300, 0.5),)),
    }
    put_figures(
        result,
        {"pred": comparison(HELD, consumptions=curves, policies={"min-latency": Curve((step(700, 0.4),))})},
    )
    assert (result.figures["consumption_half"], result.figures["consumption_10"]) == (500, 0)
    assert result.figures["pred_rate_min_latency"] == 700
    assert result.figures["consumption_best"] == 500
    assert "consumption_best: of at-most-N, N = 500 holds the most, 300 rows/s" in result.setup["notes"]
    sides = [row[1] for row in result.tables[0].rows]
    assert sides == [
        "plain Spark",
        "Penstock, longest-queue",
        "Penstock, min-latency",
        "Penstock, half",
        "Penstock, at-most-10",
        "Penstock, at-most-500",
    ]


def test_our_own_policy_counts_with_the_better_of_its_two_searches() -> None:
    result = BenchResult("riot")
    again = {"min-latency": Curve((step(1000, 0.4),)), "longest-queue": Curve((step(1200, 0.4),))}
    one = comparison(HELD, policies=again, fused=Curve((step(2400, 0.5),)))
    put_figures(result, {"pred": one})
    assert result.figures["pred_throughput_ratio"] == 20.0
    assert result.figures["pred_rate"] == result.figures["pred_rate_longest_queue"] == 1200
    assert result.figures["pred_fused_ratio"] == 2.0
    assert [row[1:3] for row in result.tables[0].rows[1:4]] == [
        ("Penstock, longest-queue", "900"),
        ("Penstock, min-latency", "1,000"),
        ("Penstock, longest-queue, once more", "1,200"),
    ]


def test_every_picture_can_be_drawn(tmp_path: Path) -> None:
    curves = {"all": Curve((step(500, 0.5),))}
    pairs = [(step(6, 0.3), step(6, 0.1))]
    made = {"pred": comparison(HELD, consumptions=curves, fused=Curve((step(900, 0.2),)), low=pairs)}
    found = [save_plot(plot, tmp_path / "riot.json") for plot in plots_of(made)]
    assert [path.name for path in found] == [
        "riot-pred-latency.png",
        "riot-utilisation.png",
        "riot-times.png",
        "riot-pred-consumption.png",
    ]
    assert all(path.stat().st_size > 5000 for path in found)
