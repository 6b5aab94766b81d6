"""Where the pure scheduler meets threads: events come in, grants go out to the stages."""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from math import inf
from typing import Protocol

from penstock.scheduling.consumption import Consumption
from penstock.scheduling.decisions import Decision, DecisionLog, Grant
from penstock.scheduling.laxity import Start
from penstock.scheduling.policies import ContextPolicy, Llf, Policy
from penstock.scheduling.redraw import redraw
from penstock.scheduling.running_turns import CutCount
from penstock.scheduling.scheduler import Scheduler
from penstock.scheduling.stage_view import StageView

log = logging.getLogger("penstock")
_DEADLINES = Llf()
CHORES = 8
"""Threads for all that is done beside turns."""


class Schedulable(Protocol):
    """A stage as the dispatcher knows it."""

    @property
    def name(self) -> str: ...

    def view(self, now: float) -> StageView | None:
        """What waits, None if nothing does (or the stage may not run)."""
        ...

    def count(self, now: float) -> int:
        """Enters what waits into its books; the rows. A view does so, too, but takes longer."""
        ...

    def turn(self, grant: Grant) -> None:
        """Runs a turn, or lets it begin; `finished` is called when it has ended. Never raises."""
        ...

    def expected_start(self, now: float) -> Start | None:
        """By when it will have to start a turn, where nothing waits and that can be predicted."""
        ...

    def fail(self, error: BaseException) -> None:
        """It cannot go on."""
        ...


class Dispatcher:
    """One lock, one scheduler, and threads for turns, twice as many as slots. A stage that waits has none.

    What is done beside turns, such as looking for what waits at a broker, has threads of its own: it may
    take long, and must not keep a turn from one that was granted its slots.
    """

    def __init__(
        self, scheduler: Scheduler, clock: Callable[[], float], decisions: DecisionLog | None = None
    ):
        self.clock = clock
        self.decisions = decisions or DecisionLog()
        self.scheduler_seconds = 0.0
        self.scheduler_cpu_seconds = 0.0
        self._scheduler = scheduler
        self._stages: dict[str, Schedulable] = {}
        self._touched: dict[str, Schedulable] = {}
        """Stages that changed while no slot was free: they are looked at before the next decision."""
        self._lock = threading.RLock()
        self._most_slots = scheduler.slots
        self._threads = _threads_for(scheduler.slots)
        self._handing_over = threading.Lock()
        self._granted: deque[tuple[Schedulable, Grant]] = deque()
        self._chores = ThreadPoolExecutor(CHORES, thread_name_prefix="penstock-chore")
        self._timers: list[tuple[float, int, Callable[[], None], bool]] = []
        self._order = count()
        self._timer_set = threading.Condition(self._lock)
        self._turn_ended = threading.Condition(self._lock)
        self._look_again_at = inf
        self.planned: Mapping[str, int] = {}
        self.exact = False
        self._closed = False
        self._clockwork = threading.Thread(target=self._run_timers, name="penstock-timers", daemon=True)
        self._clockwork.start()

    @property
    def slots(self) -> int:
        return self._scheduler.slots

    @property
    def policy(self) -> Policy:
        return self._scheduler.policy

    @property
    def grain_seconds(self) -> float:
        return self._scheduler.grain_seconds

    @property
    def context_policy(self) -> ContextPolicy:
        """The policy by which contexts are made; where turns go by another, they still tell deadlines."""
        policy = self._scheduler.policy
        return policy if isinstance(policy, ContextPolicy) else _DEADLINES

    @property
    def cuts(self) -> CutCount:
        """Turns cut short for another stage, and how often the prediction was wrong."""
        return self._scheduler.cuts

    def reschedule(self, policy: Policy | None, consumption: Consumption | None) -> None:
        """Goes on under another policy or consumption; None leaves what is."""
        with self._scheduling():
            self._look_at_touched()
            self._scheduler.reschedule(policy, consumption)
            # Their contexts are still those of the old policy.
            for stage in tuple(self._stages.values()):
                self._look_at(stage)
            self._grant_all()

    def resize(self, slots: int) -> None:
        """Goes on with another number of slots; turns that run go on whatever it is."""
        with self._scheduling():
            if slots > self._most_slots:
                with self._handing_over:
                    before, self._threads, self._most_slots = self._threads, _threads_for(slots), slots
                before.shutdown(wait=False)
            self._scheduler.resize(slots)
            self._grant_all()

    def put_in_force(self, planned: Mapping[str, int], *, exact: bool = False) -> None:
        """Rows of a batch by stage, from the next turn on; if `exact`, not even a backlog gets more."""
        with self._scheduling():
            before = {name: (rows, self.exact) for name, rows in self.planned.items()}
            self.planned, self.exact = dict(planned), exact
            for stage in tuple(self._stages.values()):
                rows = planned.get(stage.name)
                if before.get(stage.name) != (None if rows is None else (rows, exact)):
                    self._look_at(stage)
            self._grant_all()

    def drain(self, draining: bool) -> None:
        """Whether no more rows come, so that blocks that are not complete need not wait for any."""
        with self._scheduling():
            if self._scheduler.draining != draining:
                self._scheduler.draining = draining
                self._grant_all()

    def add(self, stage: Schedulable) -> None:
        with self._scheduling():
            self._stages[stage.name] = stage
            # Whether or not a slot is free: some begin to follow a broker when they are looked at first.
            self._look_at(stage)
            self._grant_all()

    def remove(self, stage: Schedulable) -> None:
        """The stage gets no further turn; one that runs goes on."""
        with self._scheduling():
            self._stages.pop(stage.name, None)
            self._touched.pop(stage.name, None)
            self._scheduler.forget(stage.name)
            self._grant_all()

    def changed(self, stage: Schedulable) -> None:
        """Rows came, or a flush is due, or the stage was paused: look at it again.

        While no slot is free nothing can be granted, and rows may come many times before one is.
        """
        with self._scheduling():
            if self._closed or self._stages.get(stage.name) is not stage:
                return
            self._touched[stage.name] = stage
            if not self._scheduler.is_full or not self._counted(stage):
                self._grant_all()

    def _counted(self, stage: Schedulable) -> bool:
        """Whether it could be; else a look at it will fail too, and stop it."""
        try:
            stage.count(self.clock())
        except Exception:
            return False
        return True

    def took(self, stage: Schedulable, rows: int) -> None:
        """The stage's turn has so many rows, more or fewer than it was granted."""
        with self._scheduling():
            if stage.name in self._scheduler.running:
                self._scheduler.took(stage.name, rows)
            if self._stages.get(stage.name) is stage:
                # Its next window is made way for from now on, and not only once the turn has ended.
                self._scheduler.expect(stage.name, stage.expected_start(self.clock()))

    def finished(self, stage: Schedulable) -> None:
        """The stage's turn has ended: its slots are free."""
        with self._scheduling():
            if stage.name in self._scheduler.running:
                self._scheduler.finished(stage.name, self.clock())
                self._turn_ended.notify_all()
            if self._stages.get(stage.name) is not stage:
                self._scheduler.withdraw(stage.name)
            elif not self._closed:
                self._touched[stage.name] = stage
            self._grant_all()

    def busy(self, stage: Schedulable) -> bool:
        """Whether the stage is in a turn, or waits for one."""
        with self._lock:
            view = None if stage.name in self._scheduler.running else stage.view(self.clock())
            # One that could only start waits for nothing: slots may never be idle.
            return stage.name in self._scheduler.running or (view is not None and not view.starts)

    def wait_for_end(self, stage: Schedulable, limit_seconds: float = 60.0) -> bool:
        """Waits until the stage is in no turn; whether that came within the limit."""
        with self._turn_ended:
            return self._turn_ended.wait_for(lambda: stage.name not in self._scheduler.running, limit_seconds)

    def recent(self, stage: str | None, n: int) -> tuple[Decision, ...]:
        with self._lock:
            return self.decisions.recent(stage, n)

    def since(self, time: float) -> tuple[Decision, ...]:
        with self._lock:
            return self.decisions.since(time)

    @property
    def in_line(self) -> frozenset[str]:
        """The stages that wait for a turn, or were granted one that has not ended."""
        with self._lock:
            return self._scheduler.in_line | self._touched.keys()

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Calls `action` at `time`, in a thread beside those of turns."""
        self._set_timer(time, action, here=False)

    def _set_timer(self, time: float, action: Callable[[], None], *, here: bool) -> None:
        """`here` for what takes no time but the lock: it then runs in the thread of the timers."""
        with self._timer_set:
            is_first = not self._timers or time < self._timers[0][0]
            heapq.heappush(self._timers, (time, next(self._order), action, here))
            if is_first:
                self._timer_set.notify_all()

    def submit(self, action: Callable[[], None]) -> None:
        with self._lock:
            if not self._closed:
                self._chores.submit(self._guarded, action)

    def close(self) -> None:
        with self._timer_set:
            self._closed = True
            self._timer_set.notify_all()
        self._clockwork.join(5)
        # What others have granted and not handed over yet, or are about to.
        self._hand_over()
        with self._handing_over:
            pass
        self._threads.shutdown(wait=True)
        self._chores.shutdown(wait=True)

    @contextmanager
    def _scheduling(self) -> Iterator[None]:
        """Holds the lock, and counts the time in it as the scheduler's: looking at stages and deciding.

        Turns that were granted are handed to their threads behind it: to wake one takes as long as to decide.
        """
        try:
            with self._lock:
                began, worked = time.perf_counter(), time.thread_time()
                try:
                    yield
                finally:
                    self.scheduler_seconds += time.perf_counter() - began
                    self.scheduler_cpu_seconds += time.thread_time() - worked
        finally:
            self._hand_over()

    def _hand_over(self) -> None:
        """Whoever comes first takes what was granted, also by another thread."""
        while self._granted:
            with self._handing_over:
                if self._granted:
                    stage, grant = self._granted.popleft()
                    self._threads.submit(self._guarded, partial(stage.turn, grant))

    def _look_at(self, stage: Schedulable) -> None:
        try:
            now = self.clock()
            view = stage.view(now)
            if view is None:
                self._scheduler.withdraw(stage.name)
                self._scheduler.expect(stage.name, stage.expected_start(now))
            else:
                self._scheduler.expect(stage.name, None)
                self._scheduler.wait(view)
        except Exception as error:
            # Such as a policy of the user's that fails: the stage stops, and says why; others go on.
            self._scheduler.forget(stage.name)
            self.submit(partial(stage.fail, error))

    def _look_at_touched(self) -> None:
        touched, self._touched = self._touched, {}
        for stage in touched.values():
            self._look_at(stage)

    def _grant_all(self) -> None:
        self._look_at_touched()
        while not self._closed:
            redraw(self._scheduler)
            decision = self._scheduler.next(self.clock())
            self.decisions.add(decision)
            if not isinstance(decision, Grant):
                if decision.until < self._look_again_at:
                    self._look_again_at = decision.until
                    self._set_timer(decision.until, partial(self._look_again, decision.until), here=True)
                return
            self._granted.append((self._stages[decision.stage], decision))

    def _look_again(self, set_for: float) -> None:
        """Unless an earlier time was set meanwhile, at which it was looked and a new one set."""
        with self._scheduling():
            if set_for == self._look_again_at:
                self._look_again_at = inf
                self._grant_all()

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException:
            log.exception("an action of the dispatcher failed; it goes on")

    def _run_timers(self) -> None:
        while True:
            with self._timer_set:
                while not self._closed and not self._due():
                    until = self._timers[0][0] - self.clock() if self._timers else None
                    self._timer_set.wait(until)
                if self._closed:
                    return
                _, _, action, here = heapq.heappop(self._timers)
                if here:
                    self._guarded(action)
                else:
                    self._chores.submit(self._guarded, action)

    def _due(self) -> bool:
        return bool(self._timers) and self._timers[0][0] <= self.clock()


def _threads_for(slots: int) -> ThreadPoolExecutor:
    """Twice the slots: a thread that has just ended one turn may still be tidying up."""
    return ThreadPoolExecutor(2 * slots + 2, thread_name_prefix="penstock-turn")
