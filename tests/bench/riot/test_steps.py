"""The search for the highest rate, and what counts as held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.bench.riot.steps import Curve, Ladder, Step, climb, heaviest, higher

GOOD = Step(rate=100, mean=0.2, p99=0.5, early_mean=0.2, late_mean=0.2, published_share=1.0)


def up_to(limit: float) -> list[float]:
    """The rates tried where everything up to `limit` is held."""
    ladder = Ladder(start=100, factor=2, refinements=2)
    curve = climb(ladder, lambda rate: replace(GOOD, rate=rate, mean=0.2 if rate <= limit else 5.0))
    return [round(step.rate) for step in curve.steps]


def test_the_search_goes_up_to_the_first_rate_that_is_not_held_then_halfway_back() -> None:
    assert up_to(1000) == [100, 200, 400, 800, 1600, 1600, 1131, 951]


def test_the_search_goes_down_where_the_first_rate_is_too_high_and_up_again_from_there() -> None:
    assert up_to(30) == [100, 25, 50, 50, 35, 30]


def test_a_rate_that_failed_at_first_is_tried_again() -> None:
    tried: list[float] = []

    def cold_at_first(rate: float) -> Step:
        tried.append(rate)
        return replace(GOOD, rate=rate, mean=0.2 if len(tried) > 1 and rate <= 400 else 5.0)

    curve = climb(Ladder(start=100, factor=2, refinements=0), cold_at_first)
    assert tried == [100, 25, 50, 100, 200, 400, 800, 800]
    assert curve.highest is not None
    assert curve.highest.rate == 400


def test_one_step_that_fails_by_chance_does_not_end_the_search() -> None:
    tried: list[float] = []

    def hiccup(rate: float) -> Step:
        tried.append(rate)
        return replace(GOOD, rate=rate, mean=5.0 if rate > 800 or tried == [100, 200] else 0.2)

    highest = climb(Ladder(start=100, factor=2, refinements=0), hiccup).highest
    assert highest is not None
    assert highest.rate == 800


def test_a_side_that_holds_nothing_has_no_highest_rate_but_a_least_one_tried() -> None:
    curve = climb(Ladder(start=100, factor=2, descents=2), lambda rate: replace(GOOD, rate=rate, mean=3.0))
    assert [step.rate for step in curve.steps] == [100, 25, 6.25]
    assert curve.highest is None
    assert curve.least.rate == 6.25


def test_the_search_ends_where_everything_is_held() -> None:
    ladder = Ladder(start=1, factor=2, most=5)
    assert len(climb(ladder, lambda rate: replace(GOOD, rate=rate)).steps) == 5


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ({}, True),
        ({"mean": 1.01}, False),
        ({"mean": 0.0}, False),
        ({"late_mean": 0.35}, True),
        ({"late_mean": 0.5}, False),
        ({"published_share": 0.85}, False),
        ({"published_share": 0.88}, True),  # a delivery may come just after 8 s
        ({"published_share": 0.88, "seconds": 40.0}, False),
    ],
)
def test_a_rate_is_held_with_low_latency_without_growth_and_with_nothing_missing(
    change: dict[str, float], held: bool
) -> None:
    assert replace(GOOD, **change).held is held  # type: ignore[arg-type]


def test_the_highest_rate_is_the_highest_held_not_the_last() -> None:
    steps = (replace(GOOD, rate=1), replace(GOOD, rate=4, mean=2.0), replace(GOOD, rate=3))
    highest = Curve(steps).highest
    assert highest is not None
    assert highest.rate == 3


def stage(**figures: float) -> dict[str, float]:
    """One that 100 rows/s come to and that serves them."""
    return {"arrival": 100.0, "waiting_early": 10.0, "waiting_late": 10.0, **figures}


@pytest.mark.parametrize(
    ("late", "rate", "seconds", "grows"),
    [
        (10.0, 100.0, 8.0, False),
        (10.0 + 0.04 * 100 * 8 * 2 / 3, 100.0, 8.0, False),
        (10.0 + 0.06 * 100 * 8 * 2 / 3, 100.0, 8.0, True),
        # In a short step, turns of half a second make as much.
        (34.0, 100.0, 2.0, False),
        (36.0, 100.0, 2.0, True),
        # Longer steps tell more.
        (100.0, 100.0, 40.0, False),
        (160.0, 100.0, 40.0, True),
        # An input row makes 100 rows here: two of them are no queue that grows.
        (205.0, 1.0, 40.0, False),
        (10.0 + 201.0, 1.0, 40.0, True),
    ],
)
def test_a_rate_is_not_held_while_any_stage_keeps_rows(
    late: float, rate: float, seconds: float, grows: bool
) -> None:
    stages = {"served": stage(), "branch": stage(waiting_late=late)}
    step = replace(GOOD, rate=rate, seconds=seconds, stages=stages)
    assert step.growing == (("branch",) if grows else ())
    assert step.held is not grows
    assert step.keeps_up is not grows


def test_the_heaviest_stage_took_the_most_slot_time_over_all_steps() -> None:
    steps = [
        replace(GOOD, stages={"parse": stage(slot_seconds=parse), "publish": stage(slot_seconds=publish)})
        for parse, publish in ((3.0, 1.0), (1.0, 2.0))
    ]
    assert heaviest(steps) == "parse"
    assert heaviest([]) == ""


def test_a_stages_share_of_queue_time_is_that_of_the_wait_until_rows_are_taken() -> None:
    stages = {
        "light": stage(queue_seconds=0.1, schedule_seconds=0.5),
        "heavy": stage(queue_seconds=0.3, schedule_seconds=0.1),
    }
    step = replace(GOOD, stages=stages)
    assert step.wait_share("heavy") == pytest.approx(0.4)
    assert step.wait_share("heavy", strictly=True) == pytest.approx(0.75)


def test_the_highest_rate_is_run_once_more_and_one_that_fails_then_does_not_count() -> None:
    tried: list[float] = []

    def lucky_at_400(rate: float) -> Step:
        tried.append(rate)
        good = rate <= 200 or (rate == 400 and tried.count(400) == 1)
        return replace(GOOD, rate=rate, mean=0.2 if good else 5.0)

    ladder = Ladder(start=100, factor=2, refinements=0, tries=1, confirmations=3)
    highest = climb(ladder, lucky_at_400).highest
    assert tried == [100, 200, 400, 800, 400, 200]
    assert highest is not None
    assert highest.rate == 200


def test_where_no_rate_tried_is_held_any_more_a_lower_one_is_looked_for() -> None:
    tried: list[float] = []

    def held_once(rate: float) -> Step:
        tried.append(rate)
        good = rate < 100 or (rate == 100 and len(tried) == 1)
        return replace(GOOD, rate=rate, mean=0.2 if good else 5.0)

    ladder = Ladder(start=100, factor=2, refinements=0, tries=1, confirmations=4)
    highest = climb(ladder, held_once).highest
    assert tried == [100, 200, 100, 50, 50]
    assert highest is not None
    assert highest.rate == 50


def test_no_rate_is_tried_at_which_hardly_a_row_comes() -> None:
    tried: list[float] = []

    def never(rate: float) -> Step:
        tried.append(rate)
        return replace(GOOD, rate=rate, mean=5.0)

    climb(Ladder(start=4.0, factor=2, descents=5, confirmations=4, least=0.5), never)
    assert tried == [4.0, 1.0, 0.5]


def test_of_two_searches_the_one_that_found_the_higher_rate_counts() -> None:
    cold, warm = Curve((replace(GOOD, mean=3.0),)), Curve((replace(GOOD, rate=40),))
    assert higher(cold, warm) is warm
    assert higher(warm, cold) is warm


def test_a_rate_is_kept_up_with_where_as_much_comes_out_as_goes_in_however_late() -> None:
    slow = replace(GOOD, mean=7.0, early_mean=7.0, late_mean=7.0)
    assert not slow.held
    assert slow.keeps_up
    assert not replace(slow, published_share=0.8).keeps_up
    highest = Curve((GOOD, replace(slow, rate=300), replace(slow, rate=400, late_mean=12.0))).highest_kept_up
    assert highest is not None
    assert highest.rate == 300


def test_a_rate_that_was_tried_again_is_shown_as_it_was_then() -> None:
    again = Curve((replace(GOOD, mean=4.0), replace(GOOD, rate=50), GOOD))
    assert [(step.rate, step.mean) for step in again.by_rate] == [(50, 0.2), (100, 0.2)]
