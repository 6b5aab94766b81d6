from penstock.scheduling import Fifo, StageView, check_policy


def test_fifo_keeps_the_contract_of_policies() -> None:
    check_policy(Fifo())


def test_the_stage_that_waited_longest_goes_first_whatever_its_queue() -> None:
    early = StageView("early", "p", rows_waiting=1, ready_since=5.0, oldest_arrival=5.0)
    late = StageView("late", "p", rows_waiting=10_000, ready_since=6.0, oldest_arrival=1.0)
    assert Fifo().priority(early, 7.0) < Fifo().priority(late, 7.0)
