from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tests.spark.conftest import eventually

from penstock.scheduling.catalog import policy_named
from penstock.scheduling.consumption import parse_consumption
from penstock.scheduling.decisions import Grant
from penstock.scheduling.laxity import Start
from penstock.scheduling.policies import Fifo
from penstock.scheduling.scheduler import Scheduler, SchedulingError
from penstock.scheduling.stage_view import StageView
from penstock.spark.dispatcher import CHORES, Dispatcher

Opened = Callable[[int], Dispatcher]


class Undecided(Fifo):
    """Has no answer for any stage."""

    def priority(self, stage: StageView, now: float) -> float:
        return math.nan


class FakeStage:
    """A stage with `rows` rows waiting; each turn takes what it was granted and ends in another thread."""

    def __init__(self, name: str, dispatcher: Dispatcher, rows: int, *, seconds: float = 0.001):
        self.name = name
        self.rows = rows
        self.granted: list[Grant] = []
        self.failed: BaseException | None = None
        self.expected: Start | None = None
        self.looks = 0
        self.counted: list[int] = []
        self.most_at_once = 0
        self.go = threading.Event()
        self.go.set()
        self._dispatcher = dispatcher
        self._seconds = seconds
        self._at_once = 0
        self._since = time.time()
        self._lock = threading.Lock()

    def count(self, now: float) -> int:
        self.counted.append(self.rows)
        return self.rows

    def view(self, now: float) -> StageView | None:
        self.looks += 1
        if self.rows == 0:
            return None
        return StageView(self.name, "fake", self.rows, self._since, self._since)

    def expected_start(self, now: float) -> Start | None:
        return self.expected

    def fail(self, error: BaseException) -> None:
        self.failed = error

    def turn(self, grant: Grant) -> None:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.granted.append(grant)
            self.rows -= grant.rows
        threading.Thread(target=self._end, daemon=True).start()

    def _end(self) -> None:
        time.sleep(self._seconds)
        self.go.wait()
        with self._lock:
            self._at_once -= 1
        self._dispatcher.finished(self)

    def more(self, rows: int) -> None:
        with self._lock:
            self.rows += rows
        self._dispatcher.changed(self)


@pytest.fixture
def opened() -> Iterator[Opened]:
    dispatchers: list[Dispatcher] = []

    def make(slots: int) -> Dispatcher:
        scheduler = Scheduler(policy_named("fifo"), slots, parse_consumption("at-most-5"))
        dispatchers.append(Dispatcher(scheduler, time.time))
        return dispatchers[-1]

    yield make
    for each in dispatchers:
        each.close()


def occupied(opened: Opened) -> tuple[Dispatcher, FakeStage]:
    """A pool whose only slot is taken, by a stage that goes on until it is told to."""
    dispatcher = opened(1)
    running = FakeStage("running", dispatcher, rows=5)
    running.go.clear()
    dispatcher.add(running)
    eventually(lambda: len(running.granted) == 1, 5)
    return dispatcher, running


def test_a_stage_is_never_in_two_turns_at_once_however_often_it_changes(opened: Opened) -> None:
    dispatcher = opened(4)
    stages = [FakeStage(f"s{number}", dispatcher, rows=0) for number in range(3)]
    for stage in stages:
        dispatcher.add(stage)

    def feed(stage: FakeStage) -> None:
        for _ in range(50):
            stage.more(1)

    feeding = [threading.Thread(target=feed, args=(stage,)) for stage in stages for _ in range(2)]
    for thread in feeding:
        thread.start()
    for thread in feeding:
        thread.join()
    eventually(lambda: not any(dispatcher.busy(stage) for stage in stages), 20)
    assert [stage.most_at_once for stage in stages] == [1, 1, 1]
    assert [sum(grant.rows for grant in stage.granted) for stage in stages] == [100, 100, 100]
    assert all(grant.rows <= 5 for stage in stages for grant in stage.granted)


def test_once_it_has_its_rows_a_stage_in_a_turn_is_expected_to_start_the_next(opened: Opened) -> None:
    dispatcher = opened(2)
    stage = FakeStage("s", dispatcher, rows=5)
    stage.go.clear()
    dispatcher.add(stage)
    eventually(lambda: len(stage.granted) == 1, 5)
    stage.expected = Start(time.time() + 1.0, "s", 0.1)
    dispatcher.took(stage, 3)
    assert dispatcher._scheduler._expected_starts == {"s": stage.expected}
    stage.go.set()


def test_no_more_turns_run_side_by_side_than_there_are_slots(opened: Opened) -> None:
    dispatcher = opened(2)
    stages = [FakeStage(f"s{number}", dispatcher, rows=5) for number in range(5)]
    for stage in stages:
        stage.go.clear()
        dispatcher.add(stage)
    eventually(lambda: sum(len(stage.granted) for stage in stages) == 2, 5)
    first = [stage.name for stage in stages if stage.granted]
    assert first == ["s0", "s1"]
    stages[0].go.set()
    eventually(lambda: len(stages[2].granted) == 1, 5)
    assert [len(stage.granted) for stage in stages] == [1, 1, 1, 0, 0]
    for stage in stages:
        stage.go.set()
    eventually(lambda: all(stage.rows == 0 for stage in stages), 5)


def test_rows_that_come_while_all_slots_are_taken_are_counted_and_looked_at_once(opened: Opened) -> None:
    dispatcher, running = occupied(opened)
    waits = FakeStage("waits", dispatcher, rows=0)
    dispatcher.add(waits)
    assert waits.looks == 1
    for _ in range(4):
        waits.more(1)
    assert (waits.looks, waits.counted) == (1, [1, 2, 3, 4])
    assert dispatcher.in_line == {"running", "waits"}
    running.go.set()
    eventually(lambda: waits.rows == 0, 5)
    assert [grant.rows for grant in waits.granted] == [4]


def test_a_stage_that_changed_while_all_slots_were_taken_may_go_before_one_is_free(opened: Opened) -> None:
    dispatcher, running = occupied(opened)
    leaves = FakeStage("leaves", dispatcher, rows=5)
    dispatcher.add(leaves)
    leaves.more(1)
    dispatcher.remove(leaves)
    running.go.set()
    assert dispatcher.wait_for_end(running, 5)
    assert leaves.granted == []
    assert dispatcher.in_line == frozenset()


def test_a_policy_without_an_answer_for_a_stage_that_has_just_changed_is_refused(opened: Opened) -> None:
    dispatcher, running = occupied(opened)
    waits = FakeStage("waits", dispatcher, rows=0)
    dispatcher.add(waits)
    waits.more(1)
    before = dispatcher.policy
    with pytest.raises(SchedulingError):
        dispatcher.reschedule(Undecided(), None)
    assert dispatcher.policy is before
    assert waits.failed is None
    running.go.set()
    eventually(lambda: waits.rows == 0, 5)


def test_a_stage_that_was_removed_gets_no_further_turn(opened: Opened) -> None:
    dispatcher = opened(1)
    stage, other = FakeStage("one", dispatcher, rows=10), FakeStage("other", dispatcher, rows=5)
    stage.go.clear()
    dispatcher.add(stage)
    eventually(lambda: len(stage.granted) == 1, 5)
    dispatcher.remove(stage)
    stage.go.set()
    dispatcher.wait_for_end(stage)
    stage.more(7)
    dispatcher.add(other)
    eventually(lambda: len(other.granted) == 1, 5)
    assert len(stage.granted) == 1
    assert stage.rows == 12


def test_a_removed_stage_that_waited_does_not_stand_in_the_way(opened: Opened) -> None:
    dispatcher = opened(1)
    first, second, third = (FakeStage(name, dispatcher, rows=5) for name in ("a", "b", "c"))
    first.go.clear()
    for stage in (first, second, third):
        dispatcher.add(stage)
    dispatcher.remove(second)
    first.go.set()
    eventually(lambda: len(third.granted) == 1, 5)
    assert second.granted == []


def test_waiting_for_the_end_of_a_turn_returns_when_it_has_ended(opened: Opened) -> None:
    dispatcher = opened(1)
    stage = FakeStage("one", dispatcher, rows=5)
    stage.go.clear()
    dispatcher.add(stage)
    eventually(lambda: len(stage.granted) == 1, 5)
    began = time.monotonic()
    dispatcher.wait_for_end(stage, 0.05)
    assert time.monotonic() - began >= 0.05
    threading.Timer(0.05, stage.go.set).start()
    dispatcher.wait_for_end(stage, 10)
    assert not dispatcher.busy(stage)


def test_an_action_that_raises_does_not_end_the_dispatcher(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    dispatcher = opened(1)
    with caplog.at_level(logging.ERROR, "penstock"):
        dispatcher.submit(lambda: 1 / 0)  # type: ignore[arg-type]
        dispatcher.at(time.time(), lambda: 1 / 0)  # type: ignore[arg-type]
        eventually(lambda: len(caplog.records) == 2, 5)
    assert {record.message for record in caplog.records} == {"an action of the dispatcher failed; it goes on"}
    done = threading.Event()
    dispatcher.at(time.time(), done.set)
    assert done.wait(5)
    stage = FakeStage("one", dispatcher, rows=5)
    dispatcher.add(stage)
    eventually(lambda: stage.rows == 0, 5)


def test_timers_fire_in_order_of_their_times_and_not_before(opened: Opened) -> None:
    dispatcher = opened(1)
    fired: list[tuple[float, float]] = []
    now = time.time()
    for delay in (0.3, 0.1, 0.2, 0.0):
        dispatcher.at(now + delay, lambda delay=delay: fired.append((delay, time.time())))  # type: ignore[misc]
    eventually(lambda: len(fired) == 4, 5)
    assert [delay for delay, _ in fired] == [0.0, 0.1, 0.2, 0.3]
    assert all(at >= now + delay for delay, at in fired)


def test_a_closed_dispatcher_grants_nothing(opened: Opened) -> None:
    dispatcher = opened(1)
    stage = FakeStage("one", dispatcher, rows=0)
    dispatcher.add(stage)
    dispatcher.close()
    stage.more(5)
    dispatcher.submit(lambda: stage.granted.clear())
    assert stage.rows == 5
    assert stage.granted == []


def test_the_grants_of_a_stage_can_be_read_with_their_reasons(opened: Opened) -> None:
    dispatcher = opened(1)
    stage = FakeStage("one", dispatcher, rows=12)
    dispatcher.add(stage)
    eventually(lambda: not dispatcher.busy(stage), 5)
    grants = [each for each in dispatcher.recent("one", 10) if isinstance(each, Grant)]
    assert [grant.rows for grant in grants] == [5, 5, 2]
    assert all(grant.reason for grant in grants)


def test_the_time_spent_in_scheduling_is_counted(opened: Opened) -> None:
    dispatcher = opened(1)
    assert dispatcher.scheduler_seconds == 0.0
    stage = FakeStage("one", dispatcher, rows=12, seconds=0.05)
    began = time.perf_counter()
    dispatcher.add(stage)
    eventually(lambda: not dispatcher.busy(stage), 5)
    # Three turns of 50 ms lie in between, which are not the scheduler's.
    assert 0.0 < dispatcher.scheduler_seconds < time.perf_counter() - began - 0.15
    assert 0.0 < dispatcher.scheduler_cpu_seconds <= dispatcher.scheduler_seconds


def test_another_policy_and_consumption_hold_from_the_next_turn_on(opened: Opened) -> None:
    dispatcher = opened(1)
    first, short, long = (FakeStage(name, dispatcher, rows) for name, rows in (("a", 5), ("b", 1), ("c", 9)))
    first.go.clear()
    for stage in (first, short, long):
        dispatcher.add(stage)
    dispatcher.reschedule(policy_named("longest-queue"), parse_consumption("all"))
    first.go.set()
    eventually(lambda: short.rows == 0, 5)
    grants = [each for each in dispatcher.recent(None, 10) if isinstance(each, Grant)]
    assert [(grant.stage, grant.rows) for grant in grants] == [("a", 5), ("c", 9), ("b", 1)]
    dispatcher.reschedule(None, None)
    assert dispatcher.slots == 1


def test_what_takes_long_beside_turns_keeps_no_turn_from_its_slot(opened: Opened) -> None:
    dispatcher, done = opened(1), threading.Event()
    for _ in range(2 * CHORES):
        dispatcher.submit(lambda: done.wait(30) and None)
    stage = FakeStage("s", dispatcher, rows=5)
    dispatcher.add(stage)
    try:
        eventually(lambda: stage.rows == 0 and not dispatcher.busy(stage), 5)
    finally:
        done.set()


def test_an_action_that_exits_does_not_end_the_dispatcher(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    dispatcher, after = opened(1), threading.Event()
    with caplog.at_level(logging.ERROR, "penstock"):
        for _ in range(2 * CHORES):
            dispatcher.submit(sys.exit)
        dispatcher.submit(after.set)
        assert after.wait(5)
        eventually(lambda: caplog.text.count("an action of the dispatcher failed") == 2 * CHORES, 5)
