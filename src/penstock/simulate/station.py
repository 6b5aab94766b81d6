"""A stage of a running simulation: what waits, the turn it is in, and what became of it so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, inf
from typing import Any

from penstock.measure.profiles import StageProfile
from penstock.scheduling.contexts import PriorityContext, ReplyContext
from penstock.scheduling.decisions import Grant
from penstock.scheduling.laxity import Start
from penstock.scheduling.outlook import Costs, Waiting, figures, known_below
from penstock.scheduling.stage_view import StageView
from penstock.simulate.costs import Chance
from penstock.simulate.inbox import Inbox, Messages, Parcel, Taken
from penstock.simulate.plant import StageSetup
from penstock.simulate.rows import Rows
from penstock.simulate.windows import MICROSECOND, OpenWindows

NO_CONTEXT: Mapping[str, Any] = {"context": None, "rows_next": None, "start_deadline": inf}
KEEP = 0.95
"""How much a turn weighs against the next one in the means of a stage, as in its learned profile."""


@dataclass(slots=True)
class Turn:
    """A turn that runs. `broken`: it ended with its node."""

    station: Station
    grant: Grant
    taken: Taken
    ends_at: float
    places: tuple[str, ...]
    result: Parcel | None
    """What it will write; None where that is nothing."""
    windows: tuple[float, ...] = ()
    """The ends of the windows that it closes."""
    carried: float = 0.0
    """By how much it changed what its station carries on, parts of a row, to the next turns."""
    broken: bool = False


class Station:
    """The state of one stage."""

    def __init__(self, setup: StageSetup, inbox: Inbox, chance: Chance):
        self.setup = setup
        self.inbox = inbox
        self.slots = setup.slots
        self.lanes = max(setup.lanes, 1)
        self.running: dict[str, Turn] = {}
        self.waits_as = ""
        """The name under which it waits for a turn; empty while it does not."""
        self.above: list[Station] = []
        self.turns = 0
        self.rows_in = 0
        self.rows_out = 0
        self.slot_seconds = 0.0
        self.planned_rows: int | None = None
        self.most_rows = setup.profiled_rows
        self._chance = chance
        self._idle = [self._lane_name(lane) for lane in range(self.lanes)]
        self._windows = OpenWindows(setup.window) if setup.window is not None else None
        self._carried = 0.0
        self._ended: dict[str, float] = {}
        self._replies: dict[str, ReplyContext] = {}
        self.profile = setup.profile(self.slots)
        self._costs: Costs | None = None
        self._mean_seconds = self.profile.mean_seconds
        self._mean_rows = float(max(setup.profiled_rows, 1))

    def _lane_name(self, lane: int) -> str:
        return self.setup.name if not self.setup.lanes else f"{self.setup.name}#{lane + 1}"

    @property
    def name(self) -> str:
        return self.setup.name

    @property
    def is_idle(self) -> bool:
        """Whether it is not in all the turns that it can be in."""
        return bool(self._idle)

    @property
    def may_wait(self) -> bool:
        """Whether rows wait that it could take now."""
        return bool(self._idle) and self.inbox.rows_waiting > 0

    @property
    def next_lane(self) -> str:
        return self._idle[-1]

    def set_slots(self, slots: int) -> None:
        """So many slots for a turn from now on or, where rows are served singly, so many at a time."""
        if self.setup.lanes:
            fresh = [self._lane_name(lane) for lane in range(slots)]
            self._idle = [name for name in fresh if name not in self.running]
            self.lanes = slots
        else:
            self.slots = slots
            self.profile = self.setup.profile(slots)
            self._costs = None

    def costs(self, grain_seconds: float) -> Costs:
        """What turns cost on the slots that it has now."""
        if self._costs is None:
            self._costs = Costs(self.profile, self.slots, grain_seconds)
        return self._costs

    @property
    def learned(self) -> StageProfile:
        """What an engine would know of it now."""
        return replace(
            self.profile,
            seconds_per_row=max(self._mean_seconds / self._mean_rows, 1e-12),
            mean_seconds=self._mean_seconds,
            most_rows=self.most_rows,
        )

    def view(self, now: float, costs: Costs | None, steepness: float | None) -> StageView:
        """As the scheduler sees it, under the name of the lane that would run; without costs, no contexts."""
        setup, inbox, rows = self.setup, self.inbox, self.inbox.rows_waiting
        oldest = inbox.oldest_arrival
        more = NO_CONTEXT
        if costs is not None and isinstance(inbox, Messages):
            more = figures(inbox.line, Waiting(rows, oldest), now, costs)
        lane = self._idle[-1]
        return StageView(
            lane,
            setup.pipeline,
            rows,
            # It waits since the end of its turn at the earliest: the scheduler would move it up to that.
            max(inbox.ready_since, self._ended.get(lane, -inf)),
            oldest,
            self.slots,
            setup.latency_seconds,
            depth=setup.depth,
            seconds_per_row=self._mean_seconds / self._mean_rows,
            selectivity=setup.selectivity,
            steepness=steepness,
            context=more["context"],
            rows_next=1 if setup.lanes else more["rows_next"],
            fixed_seconds=setup.cost.fixed_seconds,
            row_seconds=setup.cost.row_seconds,
            start_deadline=more["start_deadline"],
            rows_seen=self.most_rows,
            planned_rows=self.planned_rows,
            block_rows=setup.block_rows,
        )

    def expected_start(self, now: float) -> Start | None:
        """By when its next window will have to be worked on, where that can be predicted."""
        if self._windows is None or not isinstance(self.inbox, Messages):
            return None
        return self.inbox.line.expected_start(self._mean_seconds, now)

    def begin(self, grant: Grant, places: tuple[str, ...]) -> Turn:
        """Takes the rows of a turn; when it ends and what it will write follow from them."""
        now = grant.at
        taken = self.inbox.take(self.inbox.rows_waiting if self.setup.native else grant.rows, now)
        cost, carried = self.setup.cost, self._carried
        windows = self._closed(self._windows, taken, now) if self._windows is not None else ()
        factor = self._chance.factor(now, closes=bool(windows))
        ends_at = now + cost.mean_seconds(taken.rows.count, grant.slots) * factor + cost.after_seconds
        if self._windows is None:
            result = self._passed_on(taken, ends_at, now)
        else:
            result = self._results(windows, taken, ends_at)
        turn = Turn(self, grant, taken, ends_at, places, result, windows, self._carried - carried)
        self._idle.remove(grant.stage)
        self.running[grant.stage] = turn
        self.waits_as = ""
        return turn

    def _passed_on(self, taken: Taken, ends_at: float, now: float) -> Parcel | None:
        """What a stage without windows makes of its rows: fractions of rows are carried on."""
        wanted = taken.rows.count * self.setup.selectivity + self._carried
        count = floor(wanted + 1e-9)
        self._carried = wanted - count
        if count <= 0:
            return None
        parcel = Parcel(taken.rows.scaled(count), ends_at, self.name, context=taken.context)
        if isinstance(self.inbox, Messages) and any(each.progress is not None for each in taken.parcels):
            progress = self.inbox.sources.taken(now)
            parcel.progress = -inf if progress is None else progress
            parcel.least = min((each.least for each in taken.parcels if each.least is not None), default=None)
        return parcel

    def _closed(self, windows: OpenWindows, taken: Taken, now: float) -> tuple[float, ...]:
        """The ends of the windows that the turn completes."""
        assert isinstance(self.inbox, Messages)
        windows.take(taken.parcels)
        reached = self.inbox.sources.taken(now)
        return tuple(windows.close(reached)) if reached is not None else ()

    def _results(self, ends: tuple[float, ...], taken: Taken, ends_at: float) -> Parcel | None:
        """Of the windows that the turn completes, dated by when their frontier was there."""
        assert isinstance(self.inbox, Messages)
        assert self.setup.window is not None
        self._carried += taken.rows.count * self.setup.selectivity
        if not ends:
            return None
        sources = self.inbox.sources
        count = max(floor(self._carried + 1e-9), len(ends))
        self._carried = max(self._carried - count, 0.0)
        late = self.setup.window.late_seconds
        dates = [sources.completed_at(end + late) for end in ends]
        times = [end + late if date is None else date for end, date in zip(ends, dates, strict=True)]
        rows = Rows(times, [count / len(ends)] * len(ends), count)
        context: PriorityContext | None = taken.context
        return Parcel(rows, ends_at, self.name, ends[-1], ends[0] - MICROSECOND, context)

    def end(self, turn: Turn, measured_from: float) -> None:
        """The turn has ended well."""
        self._left(turn)
        grant, rows = turn.grant, turn.taken.rows.count
        seconds = turn.ends_at - grant.at
        self._ended[grant.stage] = turn.ends_at
        self._mean_seconds += (1.0 - KEEP) * (seconds - self._mean_seconds)
        self._mean_rows += (1.0 - KEEP) * (rows - self._mean_rows)
        self.most_rows = max(self.most_rows, rows)
        self.count_slots(grant, turn.ends_at, measured_from)
        if grant.at >= measured_from:
            self.turns += 1
            self.rows_in += rows
            self.rows_out += turn.result.rows.count if turn.result is not None else 0
        self._tell_above()

    def count_slots(self, grant: Grant, until: float, measured_from: float) -> None:
        """What a turn occupied of the measured time."""
        self.slot_seconds += grant.slots * max(until - max(grant.at, measured_from), 0.0)

    def break_off(self, turn: Turn) -> None:
        """Its rows wait again, and the windows that it would have closed are open."""
        self._left(turn)
        turn.broken = True
        self._carried -= turn.carried
        if self._windows is not None:
            self._windows.reopen(turn.windows)
        self.inbox.give_back(turn.taken)

    def _left(self, turn: Turn) -> None:
        del self.running[turn.grant.stage]
        if len(self._idle) + len(self.running) < self.lanes:
            self._idle.append(turn.grant.stage)

    def _tell_above(self) -> None:
        """Replies to those above it: what a turn costs, and the path below."""
        if not self.above or not isinstance(self.inbox, Messages):
            return
        line = self.inbox.line
        reply = line.policy.prepare_reply(ReplyContext(self._mean_seconds, line.reply.path_seconds))
        for station in self.above:
            station.replied(self.name, reply)

    def replied(self, stage: str, reply: ReplyContext) -> None:
        """A stage below has told what it and its path cost."""
        if isinstance(self.inbox, Messages):
            self._replies[stage] = reply
            self.inbox.line.reply = known_below(self.inbox.line.policy, self._replies.values())
