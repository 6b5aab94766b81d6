"""Queries that run as many turns as they are told to."""

import threading
import time

from penstock.bench.lanes import Lane


def test_a_lane_runs_the_turns_it_is_told_to_and_then_rests() -> None:
    lane = Lane(1)
    turns: list[int] = []

    def query() -> None:
        while True:
            turns.append(len(turns))
            time.sleep(0.002)
            lane.ended()

    threading.Thread(target=query, daemon=True).start()
    times = lane.run(5)
    # The query has begun with a turn of its own, before anything was asked of it.
    assert len(times) == 5
    assert len(turns) == 6
    assert min(times) >= 0.002
    time.sleep(0.02)
    assert len(turns) == 6
    assert len(lane.run(2)) == 2


def test_the_first_turn_after_a_rest_does_not_count_the_rest() -> None:
    lane = Lane(1)

    def query() -> None:
        while True:
            lane.ended()

    threading.Thread(target=query, daemon=True).start()
    lane.run(1)
    time.sleep(0.2)
    assert lane.run(1)[0] < 0.1
