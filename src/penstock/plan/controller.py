"""The controller of slots (DRS, section IV-B): more on shortage, fewer if too many, or placed anew.

A pure state machine: `step` takes the state and a look, and returns the next state with a decision. Under
a steady load it comes to rest, by six rules beside T_ra. Plans aim below T_max, while only what is measured
above it is a shortage. A shortage lasts for a window and has not passed, or all but two looks of it where
slots cannot keep up with what comes: there it is seen by what waits, as inputs that are done tell of a time
before. What piled up before a change is worked off first. Fewer slots must
have been enough at every look for a while. A better place must be better by a share, at every look of a
window. And what was measured of an allocation is remembered: one that was left is not gone back to under
the same load, unless it was good for what is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from penstock.errors import PenstockError
from penstock.model.network import Network
from penstock.plan.controller_state import (
    Hold,
    Kind,
    Rescale,
    SlotObservation,
    SlotSettings,
    SlotState,
    Visit,
)
from penstock.plan.fine_tuning import PAIRS, Line, line_through
from penstock.plan.slot_errors import SlotError, TargetOutOfReachError
from penstock.plan.slots import SlotPlan, all_though_too_few, assign_processors, judge, min_processors

VISITS = 16
"""Allocations that are remembered."""
SAME_LOAD = 0.2
"""By what share loads differ that count as the same."""
BETTER_THERE = 0.8
"""What was measured elsewhere must be at most this share of what is measured here, to go back there."""
WORKED_OFF = 3.0
"""Times T_ra in which what piled up may be worked off, if by the model there are enough slots."""
SPARED = 0.1
"""The share of slots that must become free for fewer to be worth a change."""
AT_ONCE = 4
"""Beyond what the model says, slots grow by one in so many at once."""
STEADY = 2.0
"""By what factor measurements of a window may differ for a model to be judged by them."""


@dataclass(frozen=True)
class Step:
    """What follows from one look."""

    state: SlotState
    decision: Hold | Rescale


@dataclass(frozen=True)
class SlotController:
    """Decides about slots; it keeps nothing itself."""

    settings: SlotSettings

    def step(self, state: SlotState, seen: SlotObservation) -> Step:
        """The next state, and what to do; a `Rescale` is taken to be acted on."""
        _check_stages(seen)
        state = self._taken_in(state, seen)
        decision = self._decide(state, seen)
        if isinstance(decision, Rescale):
            left = _left(state, seen, decision.kind)
            state = SlotState(decision.plan.slots, seen.now, pairs=state.pairs, left=left)
        return Step(state, decision)

    def _taken_in(self, state: SlotState, seen: SlotObservation) -> SlotState:
        """The state with what was measured."""
        if dict(seen.slots) != dict(state.slots):
            # Someone else has changed them, and what was measured before tells nothing of them.
            state = SlotState(dict(seen.slots), seen.now, pairs=state.pairs, left=state.left)
        estimate = seen.network.sojourn_seconds(seen.slots)
        if seen.inputs_done > 0:
            state = replace(state, samples=(*state.samples, seen.measured_seconds)[-self.settings.window :])
        elif estimate == inf:
            # Nothing comes out where more comes in than can be done: that is a measurement too.
            state = replace(state, samples=(*state.samples, inf)[-self.settings.window :])
        return self._voted(self._judged(self._learned(state, estimate), seen), seen)

    def _learned(self, state: SlotState, estimate: float) -> SlotState:
        """With one more pair for the regression, if the window was a steady one."""
        full = len(state.samples) == self.settings.window
        if full and 0.0 < estimate < inf and 0.0 < max(state.samples) <= STEADY * min(state.samples) < inf:
            return replace(state, pairs=(*state.pairs, (estimate, state.mean_seconds))[-PAIRS:])
        return state

    def _judged(self, state: SlotState, seen: SlotObservation) -> SlotState:
        """For how long there have been too few slots, or too many."""
        short = bool(state.samples) and state.mean_seconds > self.settings.target_seconds
        low = (
            len(state.samples) == self.settings.window and state.mean_seconds < self.settings.relaxed_seconds
        )
        return replace(
            state,
            short_looks=state.short_looks + 1 if short else 0,
            swamped_looks=state.swamped_looks + 1 if self._is_swamping(state, seen) else 0,
            low_since=min(state.low_since, seen.now) if low else inf,
            low_needed=(*state.low_needed, self._fewest(state, seen))[-self.settings.window :] if low else (),
        )

    def _voted(self, state: SlotState, seen: SlotObservation) -> SlotState:
        """Counts for how many looks an allocation has been the better one, or one as good."""
        try:
            best = assign_processors(seen.network, self._total(state))
        except SlotError:
            return replace(state, better=None, better_looks=0)
        before = seen.network.sojourn_seconds(state.better) if state.better else inf
        as_good = before * (1.0 - self.settings.worthwhile) <= best.sojourn_seconds
        return replace(state, better=best.slots, better_looks=state.better_looks + 1 if as_good else 1)

    def _total(self, state: SlotState) -> int:
        """What slots are placed with."""
        most = self.settings.most_slots
        return most if self.settings.problem == "least-latency" else min(state.total, most)

    def _decide(self, state: SlotState, seen: SlotObservation) -> Hold | Rescale:
        settings, passed = self.settings, seen.now - state.changed_at
        if len(state.samples) < settings.window:
            return Hold(f"{len(state.samples)} of {settings.window} samples since the last change")
        if passed < settings.between_seconds - 1e-6:
            return Hold(f"changed {passed:.0f} s ago, at most every {settings.between_seconds:.0f} s")
        try:
            if state.total > settings.most_slots:
                plan = assign_processors(seen.network, settings.most_slots)
                return Rescale(
                    "fewer", plan, f"{state.total} slots are in use, {settings.most_slots} allowed"
                )
            if settings.problem == "least-latency":
                return self._place(state, seen)
            if state.mean_seconds > settings.target_seconds or self._swamped(state, seen):
                return self._more(state, seen)
            if state.mean_seconds < settings.relaxed_seconds:
                return self._fewer(state, seen)
            return self._place(state, seen)
        except SlotError as error:
            return Hold(str(error))

    def _more(self, state: SlotState, seen: SlotObservation) -> Hold | Rescale:
        """Shortage: what the target needs, and at least one more, as the present ones are too few."""
        settings, swamped = self.settings, self._swamped(state, seen)
        why = f"E[T] measured {state.mean_seconds:.3g} s, over {settings.target_seconds:.3g} s"
        if state.mean_seconds <= settings.target_seconds:
            why = f"E[T] of what waits {seen.behind_seconds:.3g} s, over {settings.target_seconds:.3g} s"
        if state.short_looks < settings.window and not swamped:
            return Hold(f"{why}, at {state.short_looks} of {settings.window} looks")
        now = seen.coming
        if sum(now.least_slots.values()) > settings.most_slots:
            # What came last is beyond all slots: they are placed for what comes on average.
            now = seen.network
        estimate = now.sojourn_seconds(state.slots)
        if estimate <= settings.target_seconds and self._works_off(state, seen):
            return Hold(f"{why}, as what piled up is worked off: {estimate:.3g} s are to be expected")
        if state.samples[-1] <= settings.target_seconds and not swamped:
            return Hold(f"{why}, but no longer: {state.samples[-1]:.3g} s at last")
        if state.total >= settings.most_slots:
            placed = self._place(state, seen)
            return (
                placed
                if isinstance(placed, Rescale)
                else Hold(f"{why}, and all {state.total} slots are in use")
            )
        plan, note = self._enough(state, now)
        if plan.total <= state.total:
            return Hold(f"{why}, but more slots than {state.total} would help nowhere")
        return Rescale("more", plan, f"{why}: {plan.total} slots rather than {state.total}{note}")

    def _enough(self, state: SlotState, now: Network) -> tuple[SlotPlan, str]:
        """More slots: as many as the target takes, or all there are; and what there is to say of them."""
        settings = self.settings
        if sum(now.least_slots.values()) > settings.most_slots >= len(now.stages):
            return all_though_too_few(now, settings.most_slots), "; all there are, and too few to keep up"
        by_model, note = self._needed(now, Line())
        by_line, _ = self._needed(now, line_through(state.pairs))
        # A line through few allocations says little of others: beyond the model it is followed step by step.
        tuned = min(by_line, state.total + state.total // AT_ONCE)
        return assign_processors(now, max(by_model, tuned, state.total + 1)), note

    def _swamped(self, state: SlotState, seen: SlotObservation) -> bool:
        """Whether slots could not keep up for all but two looks of a window, and what comes is known.

        While it becomes more from one moment to the next, a plan for it would soon be one for too little.
        """
        looks = state.swamped_looks
        return looks >= max(self.settings.window - 2, 1) and not (looks == 1 and seen.rising)

    def _is_swamping(self, state: SlotState, seen: SlotObservation) -> bool:
        """Whether slots cannot keep up with what comes now, and it shows."""
        late = seen.late_seconds > self.settings.target_seconds
        return late and seen.coming.sojourn_seconds(state.slots) == inf

    def _works_off(self, state: SlotState, seen: SlotObservation) -> bool:
        """Whether there were too few slots not long ago: rows of then are among those measured."""
        patient = seen.now - state.changed_at < WORKED_OFF * self.settings.between_seconds - 1e-6
        return patient and bool(state.left) and state.left[-1].total < state.total

    def _needed(self, network: Network, line: Line) -> tuple[int, str]:
        """Slots for what plans aim at, by the regression to what is measured; K_max if none will do."""
        settings = self.settings
        aim = line.estimate_for(settings.aim_seconds)
        if not aim > 0.0:
            return settings.most_slots, "; by what was measured, no number meets the target"
        try:
            return min_processors(network, aim, settings.most_slots).total, ""
        except TargetOutOfReachError as error:
            return settings.most_slots, f"; {error}"

    def _fewer(self, state: SlotState, seen: SlotObservation) -> Hold | Rescale:
        """Too many: what the target needs, unless so few were found to be too few."""
        settings, passed = self.settings, seen.now - state.low_since
        why = f"E[T] measured {state.mean_seconds:.3g} s, under {settings.relaxed_seconds:.3g} s"
        if passed < settings.scale_down_seconds - 1e-6:
            return Hold(f"{why}, for {passed:.0f} of {settings.scale_down_seconds:.0f} s")
        short = self._known_short(state, seen)
        needed = max(state.low_needed)
        fewest = max(needed, short + 1)
        if state.total - fewest < max(SPARED * state.total, 1.0):
            placed = self._place(state, seen)
            known = f", as {short} were too few before" if short >= needed else ""
            return (
                placed if isinstance(placed, Rescale) else Hold(f"{why}, but no fewer slots would do{known}")
            )
        plan = assign_processors(seen.network, fewest)
        return Rescale("fewer", plan, f"{why}: {plan.total} slots rather than {state.total}")

    def _fewest(self, state: SlotState, seen: SlotObservation) -> int:
        """By the model; where it is too gloomy, below that one slot at a time."""
        try:
            by_model, _ = self._needed(seen.network, Line())
            by_line, _ = self._needed(seen.network, line_through(state.pairs))
        except SlotError:
            return state.total
        return max(by_line, min(by_model, state.total - 1))

    def _known_short(self, state: SlotState, seen: SlotObservation) -> int:
        """The most slots that were too few for a load which was hardly more than that of now; else 0."""
        most_busy = (1.0 + SAME_LOAD) * seen.network.busy_slots
        return max(
            (
                visit.total
                for visit in state.left
                if visit.measured_seconds > self.settings.target_seconds and visit.busy_slots <= most_busy
            ),
            default=0,
        )

    def _place(self, state: SlotState, seen: SlotObservation) -> Hold | Rescale:
        """The same slots at better places."""
        plan = judge(seen.network, state.better or assign_processors(seen.network, self._total(state)).slots)
        if dict(plan.slots) == dict(state.slots):
            return Hold(f"{plan.total} slots are where they help most")
        now = judge(seen.network, state.slots)
        gain = _gain(now, plan)
        if gain <= self.settings.worthwhile:
            return Hold(f"other places for {plan.total} slots would spare {gain:.1%}: not worth a change")
        if state.better_looks < self.settings.window:
            return Hold(f"other places were better at {state.better_looks} of {self.settings.window} looks")
        for visit in state.left:
            tried = visit.slots == plan.slots and _same(visit, seen)
            if tried and visit.measured_seconds > BETTER_THERE**visit.times * state.mean_seconds:
                return Hold(f"other places were tried and led to {visit.measured_seconds:.3g} s")
        kind: Kind = (
            "placed" if plan.total == state.total else "more" if plan.total > state.total else "fewer"
        )
        return Rescale(
            kind, plan, f"E[T] estimated {plan.sojourn_seconds:.3g} s rather than {now.sojourn_seconds:.3g} s"
        )


def _gain(now: SlotPlan, then: SlotPlan) -> float:
    """The share of E[T] that is spared."""
    return 1.0 if now.sojourn_seconds == inf else 1.0 - then.sojourn_seconds / now.sojourn_seconds


def _left(state: SlotState, seen: SlotObservation, kind: Kind) -> tuple[Visit, ...]:
    """The allocations that were left, with the present one."""
    earlier = [each.times for each in state.left if each.slots == state.slots] if kind == "placed" else []
    seconds = max(state.mean_seconds, seen.behind_seconds) if kind == "more" else state.mean_seconds
    visit = Visit(state.slots, seen.network.busy_slots, seconds, 1 + max(earlier, default=0))
    others = [each for each in state.left if each.slots != visit.slots or not _same(each, seen)]
    return (*others, visit)[-VISITS:]


def _same(visit: Visit, seen: SlotObservation) -> bool:
    """Whether the load was about that of now."""
    busy = seen.network.busy_slots
    return abs(visit.busy_slots - busy) <= SAME_LOAD * visit.times * busy


def _check_stages(seen: SlotObservation) -> None:
    names = [stage.name for stage in seen.network.stages]
    if missing := _missing(names, seen.slots):
        raise PenstockError(
            f"slots must be told for every stage of the network, got none for {missing}: E[T] hangs on them"
        )


def _missing(names: list[str], slots: Mapping[str, int]) -> str:
    return ", ".join(name for name in names if slots.get(name, 0) < 1)
