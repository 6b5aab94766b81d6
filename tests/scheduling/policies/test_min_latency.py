from hypothesis import given
from hypothesis import strategies as st

from penstock.scheduling import MinLatency, StageView, check_policy

seconds = st.one_of(st.just(0.0), st.floats(1e-9, 1e300))
selectivities = st.one_of(st.just(0.0), st.floats(1e-9, 1e9))


def view(depth: int, seconds_per_row: float = 0.0, selectivity: float = 1.0) -> StageView:
    profile = {"seconds_per_row": seconds_per_row, "selectivity": selectivity}
    return StageView("s", "p", 10, ready_since=5.0, oldest_arrival=5.0, depth=depth, **profile)


def priority(stage: StageView) -> float:
    return MinLatency().priority(stage, 7.0)


def test_min_latency_keeps_the_contract_of_policies() -> None:
    check_policy(MinLatency())


@given(st.integers(0, 1000), seconds, selectivities, seconds, selectivities)
def test_a_later_stage_goes_first_however_slow_it_is(
    depth: int, slow: float, slow_gives: float, fast: float, fast_gives: float
) -> None:
    assert priority(view(depth, slow, slow_gives)) < priority(view(depth + 1, fast, fast_gives))


def test_of_two_stages_of_one_depth_the_one_that_gives_a_row_sooner_goes_first() -> None:
    assert priority(view(2, 0.01)) < priority(view(2, 0.02))
    assert priority(view(2, 0.02, selectivity=4.0)) < priority(view(2, 0.01))
    assert priority(view(2, 1e-6)) < priority(view(2, 2e-6))


def test_a_stage_without_a_profile_goes_before_its_like_and_one_that_gives_no_rows_after_them() -> None:
    assert priority(view(1)) < priority(view(1, 0.01)) < priority(view(1, 0.01, selectivity=0.0))


def test_the_reason_says_how_many_stages_are_below() -> None:
    assert MinLatency().reason(view(0)) == "nearest to its sinks (last in its pipeline)"
    assert MinLatency().reason(view(3)) == "nearest to its sinks (3 below it)"
