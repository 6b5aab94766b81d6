import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.measure.profiles import ProfileError, Profiler, StageProfile
from penstock.measure.turns import TurnRecord


def turn(rows: int, seconds: float, rows_out: int = 0) -> TurnRecord:
    return TurnRecord("s", "p", 1, "direct", 1, 0.0, seconds, rows, rows_out, 0.0, 0.0, seconds)


def learned(profiler: Profiler) -> StageProfile:
    assert profiler.profile is not None
    return profiler.profile


def after(*turns: TurnRecord, keep: float = 0.95) -> StageProfile:
    profiler = Profiler(keep)
    for each in turns:
        profiler.learn(each)
    return learned(profiler)


def test_nothing_is_known_before_a_turn_with_rows() -> None:
    profiler = Profiler()
    assert profiler.profile is None
    profiler.learn(turn(0, 0.05))
    assert profiler.profile is None
    profiler.learn(turn(10, 0.5, rows_out=5))
    assert learned(profiler).selectivity == 0.5


def test_one_turn_gives_a_profile() -> None:
    assert after(turn(100, 0.05, rows_out=20)) == StageProfile(0.0005, 0.2, 0.05, 0.0, 1, 0.05, most_rows=100)


def test_the_cold_first_turn_is_forgotten_with_the_second() -> None:
    assert after(turn(100, 3.0), turn(100, 0.05)).seconds_per_row == pytest.approx(0.0005)


@given(fixed=st.floats(0.0, 1.0), per_row=st.floats(1e-6, 0.01), size=st.integers(100, 5000))
def test_turns_of_different_sizes_tell_the_fixed_cost_from_that_of_a_row(
    fixed: float, per_row: float, size: int
) -> None:
    sizes = [size, 10 * size] * 30
    profile = after(*(turn(rows, fixed + per_row * rows) for rows in sizes))
    for rows in set(sizes):
        assert profile.turn_seconds(rows) == pytest.approx(fixed + per_row * rows, rel=0.15, abs=0.02)
    assert profile.fixed_seconds == pytest.approx(fixed, rel=0.15, abs=0.03)


def test_turns_of_one_size_have_the_usual_fixed_cost_or_less() -> None:
    slow = after(*[turn(1000, 1.0)] * 10)
    assert slow.fixed_seconds == pytest.approx(0.1)
    assert slow.turn_seconds(1000) == pytest.approx(1.0)
    quick = after(*[turn(1000, 0.02)] * 10)
    assert quick.fixed_seconds == pytest.approx(0.02)
    assert quick.turn_seconds(1000) == pytest.approx(0.02)


def test_while_code_warms_up_what_turns_take_is_not_all_put_down_to_their_fixed_cost() -> None:
    sizes_and_seconds = [(20_000, 2.4), (20_000, 1.6), (40_000, 1.2), (60_000, 1.0), (80_000, 0.9)]
    warming = after(*(turn(rows, seconds) for rows, seconds in sizes_and_seconds))
    assert warming.fixed_seconds <= 0.1
    assert warming.row_seconds > 0.0
    # What is expected of a turn of the usual size stays what such turns took.
    rows = warming.mean_seconds / warming.seconds_per_row
    assert warming.turn_seconds(round(rows)) == pytest.approx(warming.mean_seconds, rel=0.01)


def test_a_turn_without_rows_is_expected_to_take_no_longer_than_the_shortest_with_some() -> None:
    usual = [turn(1000, 2.0), turn(10_000, 2.1)] * 20
    assert after(*usual).fixed_seconds == pytest.approx(2.0, rel=0.05)
    assert after(*usual, turn(5000, 0.2)).fixed_seconds <= 0.2


@given(st.lists(st.tuples(st.integers(0, 10**7), st.floats(0.0, 1e4), st.integers(0, 10**7)), max_size=50))
def test_whatever_comes_costs_are_never_negative_or_no_number(turns: list[tuple[int, float, int]]) -> None:
    profiler = Profiler()
    for rows, seconds, rows_out in turns:
        profiler.learn(turn(rows, seconds, rows_out))
        profile = profiler.profile
        if profile is not None:
            assert 0.0 < profile.seconds_per_row < float("inf")
            assert 0.0 <= profile.selectivity < float("inf")
            assert 0.0 <= profile.fixed_seconds < float("inf")
            assert 0.0 <= profile.row_seconds < float("inf")


def test_noise_is_averaged_out() -> None:
    rng = random.Random(1)
    sizes = [rng.randrange(1, 2000) for _ in range(200)]
    profile = after(*(turn(rows, (0.04 + 1e-4 * rows) * rng.uniform(0.9, 1.1)) for rows in sizes))
    assert profile.fixed_seconds == pytest.approx(0.04, rel=0.25)
    assert profile.row_seconds == pytest.approx(1e-4, rel=0.15)


def test_one_pause_of_the_machine_does_not_spoil_a_profile() -> None:
    usual = [turn(100, 0.05)] * 20
    assert after(*usual, turn(100, 30.0)).seconds_per_row < 0.0007


def test_a_turn_larger_than_any_before_is_no_outlier() -> None:
    profile = after(*[turn(100, 0.05)] * 20, turn(100_000, 20.0), keep=1.0)
    assert profile.row_seconds == pytest.approx(0.0002, rel=0.01)


def test_a_stage_that_has_become_slower_is_learned_anew() -> None:
    profile = after(*[turn(100, 0.05, 10)] * 50, *[turn(100, 5.0, 90)] * 100)
    assert profile.seconds_per_row == pytest.approx(0.05, rel=0.05)
    assert profile.selectivity == pytest.approx(0.9, rel=0.05)


def test_turns_that_only_flush_cost_time_and_may_give_rows() -> None:
    profile = after(turn(100, 0.1, 0), turn(100, 0.1, 0), turn(0, 0.1, 50), keep=1.0)
    assert (profile.seconds_per_row, profile.selectivity) == (0.002, 0.5)


def test_rows_that_a_record_does_not_know_of_can_be_told() -> None:
    profiler = Profiler()
    profiler.learn(turn(100, 0.1, 0), rows_out=100)
    assert learned(profiler).selectivity == 1.0


@pytest.mark.parametrize("keep", [0.0, 1.5])
def test_a_profiler_that_could_not_learn_is_refused(keep: float) -> None:
    with pytest.raises(ProfileError) as error:
        Profiler(keep)
    assert str(error.value) == (
        f"a profiler must keep a share over 0 and up to 1, got {keep}: nothing could be learned"
    )


def test_with_other_slots_rows_cost_in_proportion_and_turns_as_before() -> None:
    profiler = Profiler()
    for rows in (10, 50, 100, 30, 80, 60):
        profiler.learn(turn(rows, 0.1 + 0.01 * rows))
    before = learned(profiler)
    profiler.rescale(2)
    assert learned(profiler).row_seconds == pytest.approx(before.row_seconds / 2, rel=0.05)
    assert learned(profiler).fixed_seconds == pytest.approx(before.fixed_seconds, rel=0.05)
    assert (before.slots, learned(profiler).slots) == (1, 2)


def test_slots_are_those_of_the_last_turn_and_are_kept() -> None:
    profiler = Profiler()
    for slots in (1, 1, 1, 1, 1, 1, 4, 4, 4):
        for rows in (40, 400, 80):
            seconds = 0.1 + 0.01 * rows / slots
            profiler.learn(TurnRecord("s", "p", 1, "direct", slots, 0.0, seconds, rows, 0, 0.0, 0.0, seconds))
    again = learned(Profiler.from_json(profiler.to_json()))
    assert again.slots == 4
    assert again.row_seconds * again.slots == pytest.approx(0.01, rel=0.1)
    old = {name: value for name, value in profiler.to_json().items() if name != "slots"}
    assert learned(Profiler.from_json(old)).slots == 1, "files from before do not tell"


def test_on_several_slots_fewer_rows_than_slots_take_as_long_as_one_for_each() -> None:
    profiler = Profiler()
    for rows in (1, 2, 4, 5, 8, 3, 7):
        rounds = -(-rows // 4)
        seconds = 0.1 + 0.5 * rounds
        profiler.learn(TurnRecord("s", "p", 1, "direct", 4, 0.0, seconds, rows, 2 * rows, 0.0, 0.0, seconds))
    found = learned(profiler)
    assert found.row_seconds * 4 == pytest.approx(0.5, rel=0.1)
    assert found.selectivity == pytest.approx(2.0)


def known(turns: int = 20) -> Profiler:
    """One that has seen turns of 0.1 s + 1 ms a row."""
    profiler = Profiler()
    for rows in [100, 200] * (turns // 2):
        profiler.learn(turn(rows, 0.1 + 0.001 * rows, rows_out=rows))
    return profiler


def test_what_the_first_turn_after_a_start_takes_more_is_the_time_to_load_state() -> None:
    profiler = known()
    before = learned(profiler)
    profiler.learn(turn(100, 2.2), loads_state=True)
    found = learned(profiler)
    assert found.state_seconds == pytest.approx(2.0, rel=0.02)
    assert (found.fixed_seconds, found.row_seconds, found.turns) == (
        before.fixed_seconds,
        before.row_seconds,
        before.turns,
    )
    profiler.learn(turn(100, 0.05), loads_state=True)
    assert learned(profiler).state_seconds == pytest.approx(1.0, rel=0.02)
    assert Profiler.from_json(profiler.to_json()).profile == learned(profiler)


def test_of_the_very_first_start_it_is_told_once_turns_are_known() -> None:
    profiler = Profiler()
    profiler.learn(turn(100, 2.2), loads_state=True)
    assert learned(profiler).state_seconds == 0.0
    for rows in [100, 200] * 5:
        profiler.learn(turn(rows, 0.1 + 0.001 * rows))
    assert learned(profiler).state_seconds == pytest.approx(2.0, rel=0.05)


def test_a_turn_on_a_new_executor_says_nothing_of_others_once_costs_are_known() -> None:
    profiler = known()
    before = learned(profiler)
    profiler.learn(turn(100, 3.0), cold=True)
    assert learned(profiler) == before
    first = Profiler()
    first.learn(turn(100, 3.0), cold=True)
    assert learned(first).turns == 1


def test_the_cold_turns_of_another_run_change_nothing_that_is_trusted() -> None:
    again = Profiler.from_json(known().to_json())
    before = learned(again)
    for _ in range(Profiler.COLD_TURNS):
        again.learn(turn(100, 3.0))
    assert learned(again) == before
    again.learn(turn(100, 0.4))
    assert learned(again).mean_seconds > before.mean_seconds


def test_a_profile_of_few_turns_learns_from_the_cold_ones_of_another_run_too() -> None:
    again = Profiler.from_json(known(2).to_json())
    again.learn(turn(100, 0.3))
    assert learned(again).turns == 3


def test_a_profile_from_before_state_was_timed_is_still_read() -> None:
    stored = known().to_json()
    del stored["state_seconds"]
    assert learned(Profiler.from_json(stored)).state_seconds == 0.0


def test_a_profile_from_before_rows_were_rounded_is_still_read() -> None:
    profiler = Profiler()
    profiler.learn(turn(10, 0.5, rows_out=5))
    stored = profiler.to_json()
    del stored["rows_in"]
    assert learned(Profiler.from_json(stored)) == learned(profiler)
