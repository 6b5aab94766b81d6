from dataclasses import replace

from penstock.measure.promises import Kept, unmet

GOOD = Kept("ads", "out", 0.8, results=100, in_time=0.99, path_seconds=0.2, slots=2, busy=0.5)


def test_a_promise_that_is_kept_is_not_mentioned() -> None:
    assert unmet(GOOD) is None
    assert unmet(replace(GOOD, results=0, in_time=0.0)) is None
    assert unmet(replace(GOOD, overdue_seconds=0.5)) is None, "results come, and a moment proves nothing"


def test_results_that_never_come_are_told() -> None:
    assert unmet(replace(GOOD, results=0, in_time=1.0, overdue_seconds=12.0, busy=0.97)) == (
        "tenant 'ads' has work for sink 'out' that waits, 12 s beyond its target of 800 ms already, and no "
        "results came of late: the 2 slots are busy for 97% of the time; more slots would help, a smaller "
        "grain, or less load of the patient tenants"
    )
    some = unmet(replace(GOOD, overdue_seconds=12.0))
    assert some is not None
    assert "and 100 results came of late" in some


def test_turns_that_are_too_long_themselves_are_told_with_what_could_be_promised() -> None:
    assert unmet(replace(GOOD, in_time=0.4, path_seconds=1.0, busy=1.0)) == (
        "tenant 'ads' has 40% of its results at sink 'out' within 800 ms: its turns alone take 1 s; "
        "fuse its stages, give them more slots each, or promise 2 s"
    )


def test_a_full_pool_is_told_with_what_would_help() -> None:
    assert unmet(replace(GOOD, in_time=0.4, busy=0.97)) == (
        "tenant 'ads' has 40% of its results at sink 'out' within 800 ms: the 2 slots are busy for 97% of "
        "the time; more slots would help, a smaller grain, or less load of the patient tenants"
    )


def test_rows_that_wait_beside_free_slots_point_to_long_turns_of_others() -> None:
    told = unmet(replace(GOOD, in_time=0.4))
    assert told is not None
    assert "longer than its target" in told
