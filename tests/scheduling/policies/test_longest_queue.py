from penstock.scheduling import LongestQueue, StageView, check_policy


def test_longest_queue_keeps_the_contract_of_policies() -> None:
    check_policy(LongestQueue())


def test_the_stage_with_most_rows_goes_first_however_late_it_came() -> None:
    short = StageView("short", "p", rows_waiting=1, ready_since=5.0, oldest_arrival=5.0)
    long = StageView("long", "p", rows_waiting=10_000, ready_since=6.0, oldest_arrival=6.0)
    assert LongestQueue().priority(long, 7.0) < LongestQueue().priority(short, 7.0)
