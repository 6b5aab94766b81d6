from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.measure.congestion import Congestion, congestion_of, variation
from penstock.measure.stage_meter import StageFigures, StageMeter

NOTHING = StageMeter(0.0).figures(60.0)


def stage(
    arrivals: float, per_slot_second: float, slot_seconds: float, utilisation: float = 0.5
) -> StageFigures:
    return replace(
        NOTHING,
        arrival_rows_per_second=arrivals,
        service_rows_per_slot_second=per_slot_second,
        slot_seconds=slot_seconds,
        utilisation=utilisation,
    )


def test_a_served_load_is_balanced_and_the_highest_rate_is_that_of_the_whole_pool() -> None:
    # 100 rows/s cost 0.1 + 0.4 slots: both stages get what they need, of 2 slots.
    told = congestion_of(
        {"parse": stage(100.0, 1000.0, 6.0), "join": stage(200.0, 500.0, 24.0)}, slots=2, first={"parse"}
    )
    parse, join = told.stages
    assert (parse.weight, parse.relative_input, parse.relative_service) == (0.1, 1.0, 1.0)
    assert (join.weight, join.relative_input, join.relative_service) == (0.4, 2.0, 0.5)
    assert (parse.balance, join.balance) == pytest.approx((0.1, 0.1))
    assert told.weight_cv == pytest.approx(0.0, abs=1e-9)
    assert told.highest_rows_per_second == pytest.approx(2 / (1 / 1000 + 2 / 500))
    assert (told.input_rows_per_second, told.first_rows_per_slot_second) == (100.0, 1000.0)


def test_equal_shares_for_unequal_needs_are_out_of_balance() -> None:
    figures = {"parse": stage(100.0, 1000.0, 30.0, 0.2), "join": stage(200.0, 500.0, 30.0, 0.6)}
    told = congestion_of(figures, slots=1, first={"parse"})
    assert [each.balance for each in told.stages] == pytest.approx([0.5, 0.125])
    assert told.weight_cv == pytest.approx(0.6)
    assert told.utilisation_cv == pytest.approx(0.5)


def test_stages_without_rows_are_left_out_and_named() -> None:
    told = congestion_of(
        {"parse": stage(100.0, 1000.0, 6.0), "idle": NOTHING, "stuck": stage(5.0, 0.0, 60.0)},
        slots=2,
        first={"parse"},
    )
    assert [each.stage for each in told.stages] == ["parse"]
    assert told.left_out == ("idle", "stuck")
    assert told.weight_cv == 0.0


def test_a_stage_that_starves_or_is_stuck_counts_in_the_variation_of_utilisation() -> None:
    served = {"parse": stage(100.0, 1000.0, 6.0, 0.5), "join": stage(100.0, 1000.0, 6.0, 0.5)}
    assert congestion_of(served, 2, {"parse"}).utilisation_cv == 0.0
    starved = served | {"starved": stage(0.0, 0.0, 0.0, 0.0), "stuck": stage(5.0, 0.0, 60.0, 1.0)}
    told = congestion_of(starved, 2, {"parse"})
    assert told.utilisations == (0.5, 0.5, 0.0, 1.0)
    assert told.utilisation_cv == pytest.approx(0.5**0.5)


@pytest.mark.parametrize("figures", [{}, {"parse": NOTHING}, {"parse": NOTHING, "join": stage(1, 1, 1)}])
def test_without_rows_at_the_first_operation_nothing_is_known(figures: dict[str, StageFigures]) -> None:
    told = congestion_of(figures, slots=2, first={"parse"})
    assert told == Congestion(
        2, (), tuple(figures), utilisations=tuple(each.utilisation for each in figures.values())
    )
    assert (told.highest_rows_per_second, told.weight_cv) == (None, None)
    assert (told.input_rows_per_second, told.first_rows_per_slot_second) == (None, None)


def test_several_sources_count_together() -> None:
    told = congestion_of({"a": stage(100.0, 1000.0, 6.0), "b": stage(300.0, 500.0, 36.0)}, 2, {"a", "b"})
    assert told.input_rows_per_second == 400.0
    # A row costs 1 ms with chance 1/4, 2 ms with chance 3/4.
    assert told.first_rows_per_slot_second == pytest.approx(1 / 0.00175)
    assert told.highest_rows_per_second == pytest.approx(2 / 0.00175)


rates = st.one_of(st.just(0.0), st.floats(1e-6, 1e7))
loads = st.builds(stage, rates, rates, st.floats(0.0, 120.0), st.floats(0.0, 1.0))


@given(st.dictionaries(st.sampled_from("abcde"), loads), st.integers(1, 16))
def test_what_is_known_is_never_negative_and_always_a_number(
    figures: dict[str, StageFigures], slots: int
) -> None:
    told = congestion_of(figures, slots, first={"a", "b"})
    values = [told.highest_rows_per_second, told.weight_cv, told.utilisation_cv]
    assert all(value is None or 0.0 <= value < float("inf") for value in values)
    assert {each.stage for each in told.stages} | set(told.left_out) == figures.keys()


def test_the_variation_of_nothing_is_not_known() -> None:
    assert (variation([]), variation([0.0, 0.0]), variation([2.0])) == (None, None, 0.0)
