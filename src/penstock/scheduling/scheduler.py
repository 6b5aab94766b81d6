"""The scheduler: a pool of slots, the stages that wait for them, and who is next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from math import inf

from penstock.errors import PenstockError
from penstock.scheduling.consumption import All, Consumption, Planned
from penstock.scheduling.decisions import Choice, Decision, Grant, Hold, WentFirst, count
from penstock.scheduling.laxity import (
    BEHIND_TURNS,
    BEYOND_SEEN,
    BEYOND_SEEN_ALONE,
    FEW_ROWS,
    LATER_SECONDS,
    ROOM_SECONDS,
    SAFETY,
    Cut,
    Start,
    cut_for_room,
    cut_for_urgent,
    cut_to_grain,
    grain_alone,
    put_off_seconds,
    sensible_rows,
    start_by,
    start_of,
    turn_seconds,
)
from penstock.scheduling.policies import BatchIt, ContextPolicy, Policy
from penstock.scheduling.probes import Probes
from penstock.scheduling.put_off import IN_IDLE_SLOTS, UNTIL_COMPLETE, UNTIL_IT_PAYS, put_off
from penstock.scheduling.running_turns import CutCount, RunningTurns
from penstock.scheduling.slot_use import SlotUse
from penstock.scheduling.stage_view import StageView
from penstock.scheduling.starting import StartingStages
from penstock.scheduling.trials import Trials
from penstock.scheduling.waiting import Place, WaitingStages

_ALL = All()
NEXT_IN_LINE = 3
"""Of those behind a stage that is held back, how many are looked at."""


class SchedulingError(PenstockError):
    """A call that contradicts what the scheduler knows."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class Scheduler:
    """Grants turns on a pool of slots, in the order of a policy.

    No stage is granted a second turn before its first is `finished`. The stage that is next keeps its
    place: while it needs more slots than are free nobody overtakes it, so that a wide stage cannot
    starve; the slots it waits for stay free meanwhile. One that needs more than the pool gets the whole pool.
    Equal calls give equal decisions. Not safe for threads: the caller locks.

    Under a policy by contexts a stage that has waited for `patience_seconds` goes before all that have waited
    less. So, among N stages with turns of at most T seconds on one slot each, none waits longer than
    patience + N * T.
    A turn is predicted to take `grain_seconds` at most, and the rest of its rows queue again; a stage that is
    alone, and in no hurry, has nobody to make way for, and takes longer turns.
    """

    def __init__(
        self,
        policy: Policy,
        slots: int,
        consumption: Consumption = _ALL,
        *,
        patience_seconds: float = inf,
        grain_seconds: float = inf,
    ) -> None:
        self._policy = policy
        self._consumption = _suited(consumption, policy)
        self._patience = patience_seconds
        self._grain = grain_seconds
        self._slots = _checked_slots(slots)
        self._known: set[str] = set()
        self._turns = RunningTurns()
        self._expected_starts: dict[str, Start] = {}
        self._held_for_room: dict[str, float] = {}
        self._probes = Probes()
        self._trials = Trials()
        self._use = SlotUse()
        self.draining = False
        """No more rows come: what waits for more, as a block's rest does, runs once nothing else does."""
        self._now = -inf
        self._during_turn: dict[str, StageView] = {}  # waits, but is still in a turn
        self._starting = StartingStages()
        self._waiting = WaitingStages()

    @property
    def slots(self) -> int:
        return self._slots

    @property
    def policy(self) -> Policy:
        return self._policy

    @property
    def grain_seconds(self) -> float:
        return self._grain

    @property
    def free_slots(self) -> int:
        """Slots no turn occupies; 0 also where a smaller pool is still overfull."""
        return max(self._slots - self._turns.used, 0)

    @property
    def is_full(self) -> bool:
        """Whether turns occupy all slots: none can begin before one has ended."""
        return self._slots > 0 and not self.free_slots

    @property
    def cuts(self) -> CutCount:
        """Turns that were cut for another stage, and how many of them overran."""
        return self._turns.cuts

    @property
    def running(self) -> Mapping[str, int]:
        """The stages in a turn, with the slots they occupy: a live, read-only view."""
        return self._turns.slots

    @property
    def stages_waiting(self) -> int:
        """How many stages could be granted a turn, given the slots."""
        return len(self._waiting)

    @property
    def upcoming(self) -> str:
        """The stage that is first in line by the policy, whether or not it can start; "" if none waits."""
        view = self._waiting.first
        return "" if view is None else view.name

    @property
    def in_line(self) -> frozenset[str]:
        """The stages that wait for a turn, or were granted one that has not ended."""
        return frozenset(self._waiting.names | self._turns.slots.keys())

    def wait(self, view: StageView) -> None:
        """The stage waits for a turn, with these figures; they replace what was known of it.

        During its turn they are kept until it is finished. A stage begins to wait when its last turn
        ends, at the earliest: an older `ready_since` is moved up to that. One that was withdrawn may
        wait again.
        """
        if not view.has_work:
            raise SchedulingError(
                view.name,
                f"stage {view.name!r} must have rows or a flush to wait for a turn, got 0 rows: "
                "withdraw it, an empty turn is never granted",
            )
        self._known.add(view.name)
        if view.starts:
            self.withdraw(view.name)
            self._starting.put(view)
            return
        self._starting.take(view.name)
        if view.name in self._turns:
            self._during_turn[view.name] = view
        else:
            self._enqueue(view)

    def withdraw(self, name: str) -> None:
        """The stage waits no more; a turn it is in goes on. Nothing happens if it does not wait.

        It may wait again, and then has not waited since before its last turn.
        """
        self._during_turn.pop(name, None)
        self._waiting.take(name)
        self._starting.take(name)
        self._held_for_room.pop(name, None)

    def next(self, now: float) -> Decision:
        """Grants the next turn and takes its slots, or says why none is granted. Call it until it holds."""
        decision = self._next_with_work(now)
        return (isinstance(decision, Hold) and self._early_start(now)) or decision

    def _early_start(self, now: float) -> Grant | None:
        """A stage without rows may start while all that waits is put off, if nobody is kept waiting by it.

        How long that takes is not known: a slot stays free where another stage must start soon.
        """
        if not self._starting:
            return None
        first, latest = self._waiting.first, now + LATER_SECONDS
        if first is not None and self._waiting.place_of(first.name).level <= IN_IDLE_SLOTS:
            return None
        soon = any(self._waiting.starting_before(latest)) or any(
            now < start.by < latest for start in self._expected_starts.values()
        )
        view = self._starting.next(self.free_slots - soon)
        return None if view is None else self._granted(view, Cut(0), view.slots, WentFirst.NO)

    def _next_with_work(self, now: float) -> Decision:
        self._now = max(self._now, now)
        if self.is_full and (first := self._waiting.first) is not None:
            return self._short_of_slots(first, 0)
        self._end_waits(now)
        must, why = self._must(now)
        view = must or self._waiting.first
        if view is None:
            return Hold("no stage waits", now)
        held = self._held_back(view, now, must=must is not None)
        return held or self._made_way(view, now, why)

    def _must(self, now: float) -> tuple[StageView | None, WentFirst]:
        """A stage that goes before all others, if there is one: one that starved, is due, or is untried."""
        if (view := self._starved(now)) is not None:
            return view, WentFirst.STARVED
        if (view := self._due(now)) is not None:
            return view, WentFirst.NO
        view = self._untried(now)
        return view, WentFirst.UNTRIED if view is not None else WentFirst.NO

    def _held_back(self, view: StageView, now: float, *, must: bool) -> Hold | None:
        """Why a stage gets no turn now, of whatever size; None if it may. If it `must`, only slots count."""
        if not must and now < (later := self._put_off_until(view, now)):
            reason = "what it waits for is not complete, and a turn for so few rows now would be for nothing"
            return Hold(reason, now, view.name, until=min(later, self._waiting.until))
        if self._slots == 0:
            return Hold("the pool has no slots: no executor is registered", now, view.name)
        free, needed = self.free_slots, self._needed(view)
        if needed > free:
            return self._short_of_slots(view, free)
        if not must and self._keeps_last_slot(view, needed):
            reason = "its batch is not full: the last free slot is kept for one that is, or that must start"
            oldest = self._waiting.oldest or view
            until = max(min(self._next_due(now), oldest.ready_since + self._patience), now + 0.001)
            return Hold(reason, now, view.name, until=until)
        return None

    def _short_of_slots(self, view: StageView, free: int) -> Hold:
        are = "is" if free == 1 else "are"
        reason = f"needs {count(self._needed(view), 'slot')}, {free} of {self._slots} {are} free"
        return Hold(reason, self._now, view.name)

    def _needed(self, view: StageView) -> int:
        return min(view.slots, self._slots)

    def _made_way(self, view: StageView, now: float, went_first: WentFirst) -> Decision:
        """A turn of the size that makes way for who must start soon; if there is none, for now, a hold.

        A stage that is held so for long gets a small turn all the same, one that starves a sensible one.
        """
        needed = self._needed(view)
        cut = self._sized(view, now, needed, makes_room=went_first is WentFirst.NO)
        if went_first is WentFirst.UNTRIED and not view.rows_seen:
            cut = Cut(self._least(view, starved=False))
        if cut.rows or not view.rows_waiting:
            self._probes.forget(view.name)
            return self._granted(view, cut, needed, went_first)
        starved = went_first is WentFirst.STARVED
        probe_at = self._probes.due(view.name, now)
        if not starved and now < probe_at:
            if (other := self._instead(now)) is not None:
                return other
            reason = f"its turn would not end before {cut.urgent} must start: a slot stays free for that"
            # When its turn would have to end may be past: nothing changes by looking again at once.
            no_more_room = self._held_for_room.get(view.name, inf) + ROOM_SECONDS
            times = (cut.end_by, probe_at, no_more_room, self._waiting.until, self._next_trial)
            return Hold(reason, now, view.name, until=min(each for each in times if each > now))
        self._probes.probed(view.name)
        return self._granted(view, Cut(self._least(view, starved)), needed, went_first, tried=True)

    def _instead(self, now: float) -> Grant | None:
        """A turn of one of the next in line, which fits where that of the first does not."""
        for level, view in islice(self._waiting.in_order(), 1, 1 + NEXT_IN_LINE):
            needed = self._needed(view)
            if level > IN_IDLE_SLOTS or needed > self.free_slots:
                return None
            cut = self._sized(view, now, needed, makes_room=True)
            if cut.rows or not view.rows_waiting:
                self._probes.forget(view.name)
                return self._granted(view, cut, needed, WentFirst.NO)
        return None

    def _least(self, view: StageView, starved: bool) -> int:
        """The rows of a turn that will make another late: no more than it takes to get somewhere."""
        rows = self._grained(view)
        least = sensible_rows(view, rows) if starved else FEW_ROWS
        return max(min(rows, least), min(rows, view.block_rows))

    def _put_off_until(self, view: StageView, now: float) -> float:
        """Until when a turn for what there is would be for nothing; `now` where it would not be."""
        how, _, until, _ = self._waiting.place_of(view.name)
        if how not in (UNTIL_IT_PAYS, UNTIL_COMPLETE) or (self.draining and not self._turns):
            return now
        if how == UNTIL_IT_PAYS:
            return until
        oldest = self._waiting.oldest or view
        return min(view.ready_since, oldest.ready_since) + self._patience

    def _granted(
        self, view: StageView, cut: Cut, needed: int, went_first: WentFirst, *, tried: bool = False
    ) -> Grant:
        now, free = self._now, self.free_slots
        self._waiting.take(view.name)
        self._held_for_room.pop(view.name, None)
        self._starting.granted(view)
        self._turns.begin(view, cut, needed, now)
        if went_first is WentFirst.UNTRIED:
            self._trials.begin(view.name, now)
        self._use.changed(self._turns.used / self._slots, now)
        waited = max(now - view.ready_since, 0.0)
        why = Choice(self._policy, view, waited, free, self._slots, cut.urgent, went_first, tried)
        return Grant(view.name, cut.rows, needed, now, waited, why)

    def took(self, name: str, rows: int) -> None:
        """The stage's turn has other rows than were granted: when it ends is expected anew."""
        self._turns.took(name, rows)

    def _wanted(self, view: StageView) -> int:
        rows = self._consumption.rows(view)
        return rows if view.rows_next is None else min(rows, view.rows_next)

    def _grained(self, view: StageView) -> int:
        """The rows that consumption wants, cut to the grain; 0 for a flush."""
        if not view.rows_waiting:
            return 0
        rows = self._wanted(view)
        alone = self._known <= {view.name}
        grain = grain_alone(view, self._grain) if alone else self._grain
        cut = cut_to_grain(view, rows, grain, BEYOND_SEEN_ALONE if alone else BEYOND_SEEN)
        # Part of a block makes nothing, however short its turn is.
        return max(cut, min(rows, view.block_rows))

    def _sized(self, view: StageView, now: float, needed: int, *, makes_room: bool) -> Cut:
        """The rows of a turn: what consumption wants, cut to the grain and for whoever must start soon.

        While slots are ample one that `makes_room`, and is not behind itself, can as well be out of the way
        of windows that will be ready while it runs.
        """
        rows = self._grained(view)
        # What was learned from a few cold turns must not keep a stage from the turns that teach better.
        if not rows or not view.trusted or not _by_deadline(self._policy):
            return Cut(rows)
        latest = min(now + SAFETY * turn_seconds(view, rows) + LATER_SECONDS, view.start_deadline)
        starts = [*self._expected_starts.values()]
        starts += [start_of(other) for other in self._waiting.starting_before(latest) if other is not view]
        starts += [start_of(other) for other in self._during_turn.values()]
        seen = [each for start in starts if (each := start.seen_soon(now)) is not None and each.by < latest]
        ends = [now] * (self.free_slots - needed) + self._turns.free_at(now)
        cut = cut_for_urgent(view, rows, now, seen, ends)
        behind = view.rows_waiting > BEHIND_TURNS * rows
        if not makes_room or behind or not cut.rows or self._use.is_scarce(now):
            return cut
        if all(each.ready == -inf for each in seen):
            return cut
        room = cut_for_room(view, cut.rows, now, seen, ends)
        if room.rows == cut.rows or not (room.rows or self._is_held_for_room(view.name, now)):
            return cut
        return room

    def _is_held_for_room(self, name: str, now: float) -> bool:
        """Whether a stage waits for others to go first, though they could wait for it: not for long."""
        return now < self._held_for_room.setdefault(name, now) + ROOM_SECONDS

    def expect(self, name: str, start: Start | None) -> None:
        """The stage has nothing to do now, but will have to start by then; None: nothing is expected."""
        self._known.add(name)
        if start is None:
            self._expected_starts.pop(name, None)
        else:
            self._expected_starts[name] = start

    def forget(self, name: str) -> None:
        """The stage is gone."""
        self.withdraw(name)
        self._known.discard(name)
        self._turns.forget(name)
        self._expected_starts.pop(name, None)
        self._probes.forget(name)
        self._trials.forget(name)

    def finished(self, name: str, now: float) -> None:
        """The stage's turn has ended, well or badly: its slots are free, and it may wait again."""
        if name not in self._turns:
            raise SchedulingError(
                name,
                f"stage {name!r} must be in a turn to finish one, but it is in none: it holds no slots",
            )
        self._now = max(self._now, now)
        self._turns.end(name, now)
        self._starting.ended(name)
        self._trials.end(name, now)
        self._use.changed(self._turns.used / max(self._slots, 1), self._now)
        view = self._during_turn.pop(name, None)
        if view is not None:
            self._enqueue(view)

    def resize(self, slots: int) -> None:
        """Changes the pool. Turns that run go on, even where they then occupy more than it has.

        A pool without slots grants nothing until it has some again.
        """
        if slots < 0:
            raise SchedulingError("", f"a pool must have 0 slots or more, got {slots}: it stays as it was")
        self._slots = slots

    def reschedule(self, policy: Policy | None = None, consumption: Consumption | None = None) -> None:
        """Goes on under another policy, another consumption, or both; what waits is put in order anew.

        A policy that has no answer for a stage that waits is refused, and nothing changes.
        """
        if policy is not None:
            self._waiting.reorder(lambda view: self._place(policy, view))
            self._policy = policy
        self._consumption = _suited(consumption or self._consumption, self._policy)

    def _enqueue(self, view: StageView) -> None:
        turn_end = self._turns.ended_at(view.name)
        if turn_end > view.ready_since:
            view = replace(view, ready_since=turn_end)
        self._waiting.put(view, self._place(self._policy, view))

    def _end_waits(self, now: float) -> None:
        """Who has waited for more rows long enough stands with those that use idle slots."""
        for view in self._waiting.put_off_until(now):
            self._waiting.put(view, self._place(self._policy, view))

    def _place(self, policy: Policy, view: StageView) -> Place:
        now = max(self._now, view.ready_since)
        priority = policy.priority(view, now)
        if priority != priority:
            raise SchedulingError(
                view.name,
                f"{policy} must give stage {view.name!r} a number, got nan: it has no place in line",
            )
        level = put_off(policy, view, now, scarce=self._use.is_scarce(now))
        untried = _by_deadline(policy) and self._trials.wanted(view)
        if level != UNTIL_IT_PAYS:
            return Place(level, priority, untried=untried)
        until = view.ready_since + min(put_off_seconds(view), self._patience)
        if now < until:
            return Place(level, priority, until, untried)
        return Place(IN_IDLE_SLOTS, priority, untried=untried)

    def _starved(self, now: float) -> StageView | None:
        """The stage that has waited longest, if that is longer than patience lasts."""
        if self._patience == inf or not isinstance(self._policy, ContextPolicy | BatchIt):
            return None
        view = self._waiting.oldest
        return view if view is not None and now - view.ready_since >= self._patience else None

    def _untried(self, now: float) -> StageView | None:
        """By deadlines, a stage that must wait no longer for one of its first turns, where there is room."""
        view = self._waiting.oldest_untried
        if view is None or now < self._trials.due(view):
            return None
        # The slots that the first in line waits for are not for others, nor does it wait for this one's.
        first = self._waiting.first or view
        return view if max(self._needed(view), self._needed(first)) <= self.free_slots else None

    @property
    def _next_trial(self) -> float:
        view = self._waiting.oldest_untried
        return inf if view is None else self._trials.due(view)

    def _due(self, now: float) -> StageView | None:
        """Under a plan, the stage that must start soonest, if that is now: its batch need not be full."""
        view = self._soonest if isinstance(self._policy, BatchIt) else None
        return view if view is not None and start_by(view) <= now else None

    @property
    def _soonest(self) -> StageView | None:
        """The stage that must start soonest, of those that could."""
        view = self._waiting.soonest
        if view is None or not view.blocked:
            return view
        ready = (each for each in self._waiting.starting_before(inf) if not each.blocked)
        return min(ready, key=start_by, default=None)

    def _keeps_last_slot(self, view: StageView, needed: int) -> bool:
        """Under a plan: a turn for part of a batch, which nothing interrupts, leaves a slot to others."""
        if view.full or not isinstance(self._policy, BatchIt):
            return False
        return bool(self._turns) and needed >= self.free_slots

    def _next_due(self, now: float) -> float:
        """When the first of the waiting stages must start."""
        view = self._soonest
        return inf if view is None else max(start_by(view), now + 0.001)


def _suited(consumption: Consumption, policy: Policy) -> Consumption:
    """Planned turns are stretched by batchit alone: under any other policy they are cut, never longer."""
    if not isinstance(consumption, Planned):
        return consumption
    return replace(consumption, stretches=isinstance(policy, BatchIt))


def _by_deadline(policy: Policy) -> bool:
    return bool(getattr(policy, "by_deadline", False))


def _checked_slots(slots: int) -> int:
    if slots < 1:
        raise SchedulingError("", f"a pool must have at least 1 slot, got {slots}: no turn could ever run")
    return slots
