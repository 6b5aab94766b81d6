"""Turn sizing by laxity: a patient turn, which nothing interrupts, ends before an urgent one must start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import floor, inf
from typing import NamedTuple

from penstock.scheduling.stage_view import StageView

BEYOND_SEEN, BEYOND_SEEN_ALONE = 4, 16
"""Times the largest turn that was seen, how large the next may be."""
FEW_ROWS = 5_000
PROBE_SECONDS = 2.0
"""A stage that was held back for so long gets a turn of few rows: what is believed of it may be wrong."""
LEAST_KNOWN = 20_000
FIRST_TURN = 100_000
EARLY_PAYS = 4
ALONE_GRAINS, ALONE_SHARE = 10, 0.1
"""Of a stage that is alone: its turns in grains, and in shares of its target, at most."""
PUT_OFF_SECONDS, MOST_PUT_OFF_SECONDS = 2.0, 10.0
SAFETY = 1.3
RESERVE, MOST_RESERVE_SECONDS = 0.25, 1.0
"""Of its target, what a stage has left when others make way for it: turns are often longer than predicted."""
ROOM_SECONDS = 0.5
"""While slots are ample, how long a stage is held at most for another to start the moment it is ready."""
BEHIND_TURNS = 4
"""A stage with rows for more turns than these makes no such room: it may have too little time as it is."""
ANY_MOMENT_SECONDS, MUCH_LATER_SECONDS = 0.02, 0.3
"""What should be ready and is not will be so soon; one that is so much later is not held for."""
LATER_SECONDS = 2.0
"""Who must start so long after a turn has no say in its size."""


class Start(NamedTuple):
    """By when a stage must start its turn, and how long that will take, 0 where nothing is known of that.

    One that waits for a window to be complete can start at `ready`, and is not waited for after `lapses`.
    With its `reserve` used up it could start by as much later.
    """

    by: float
    name: str
    seconds: float = 0.0
    ready: float = -inf
    lapses: float = inf
    reserve: float = 0.0

    def seen(self, now: float) -> Start | None:
        """The same as it is now: what should be ready and is not is later by as much; None once it lapses."""
        late = now - self.ready if self.ready > -inf else 0.0
        if now >= self.lapses or (late <= 0.0 and now >= self.by):
            return None
        return self if late <= 0.0 else self._replace(by=self.by + late, ready=now)

    def seen_soon(self, now: float) -> Start | None:
        """The same; of one that is much later than it should be nothing tells when it will be ready."""
        seen = self.seen(now)
        if seen is None or self.ready == -inf or now - self.ready < MUCH_LATER_SECONDS:
            return seen
        return seen._replace(ready=-inf)


@dataclass(frozen=True, slots=True)
class Cut:
    """How many rows a turn may take, 0 if no number makes sense; it must end by `end_by`, for `urgent`."""

    rows: int
    end_by: float = inf
    urgent: str = ""

    def without_rows(self) -> Cut:
        return Cut(0, self.end_by, self.urgent)


def turn_seconds(stage: StageView, rows: int) -> float:
    """C(n, k), as far as the stage's profile can tell."""
    return stage.fixed_seconds + stage.row_seconds * rows / stage.slots


def rows_within(stage: StageView, rows: int, seconds: float) -> int:
    """As many of `rows` as are done in `seconds`, none if not even a turn without rows is.

    >>> stage = StageView("s", "p", 1000, 0.0, 0.0, fixed_seconds=0.1, row_seconds=0.001)
    >>> rows_within(stage, 1000, 0.6), rows_within(stage, 1000, 0.05)
    (500, 0)
    """
    if seconds < stage.fixed_seconds:
        return 0
    if stage.row_seconds <= 0.0:
        return rows
    return min(rows, floor(stage.slots * (seconds - stage.fixed_seconds) / stage.row_seconds + 1e-9))


def pays_early(stage: StageView) -> bool:
    """Whether a turn for a window that is not complete yet spares the next much more than it costs itself.

    Much more: turns in idle slots are quicker than others, so that the profile takes rows for costlier than
    they are.

    >>> pays_early(StageView("s", "p", 1000, 0.0, 0.0, fixed_seconds=0.1, row_seconds=0.001))
    True
    >>> pays_early(StageView("s", "p", 100, 0.0, 0.0, fixed_seconds=0.1, row_seconds=0.001))
    False
    """
    return turn_seconds(stage, stage.rows_waiting) >= EARLY_PAYS * stage.fixed_seconds


def put_off_seconds(stage: StageView) -> float:
    """How long a turn that would be mostly fixed cost waits for more rows: longer where the target is far.

    >>> put_off_seconds(StageView("s", "p", 10, 0.0, 0.0, latency_seconds=600.0))
    6.0
    """
    return max(PUT_OFF_SECONDS, min((stage.latency_seconds or 0.0) / 100, MOST_PUT_OFF_SECONDS))


def start_by(stage: StageView) -> float:
    """By when a stage that waits must start, less its reserve."""
    return stage.start_deadline - reserve_seconds(stage.latency_seconds)


def start_of(stage: StageView) -> Start:
    """The same, with how long its turn would be."""
    reserve = reserve_seconds(stage.latency_seconds)
    start = Start(start_by(stage), stage.name, turn_seconds(stage, stage.rows_waiting), reserve=reserve)
    context = stage.context
    if context is None or not context.deferred:
        return start
    return start._replace(ready=context.time, lapses=context.time + context.latency_seconds)


def reserve_seconds(latency_seconds: float | None) -> float:
    """What a stage with such a target has left when others make way for it."""
    return min(RESERVE * (latency_seconds or 0.0), MOST_RESERVE_SECONDS)


def cut_to_grain(stage: StageView, rows: int, grain_seconds: float, beyond: int = BEYOND_SEEN) -> int:
    """At most a grain of predicted time; the rest queues again. A turn whose fixed cost is most of the grain
    takes as many rows as double it, or it would never get anywhere."""
    if grain_seconds == inf:
        return rows
    # Nothing is known of turns much larger than those that were seen.
    known = max(beyond * stage.rows_seen, LEAST_KNOWN) if stage.rows_seen else FIRST_TURN
    rows = min(rows, known)
    if stage.row_seconds <= 0.0 and stage.rows_seen and stage.fixed_seconds > grain_seconds:
        # Turns of one size, all of them too long: it is not known yet what a smaller one takes. Few rows are
        # not the reason, but a cold start.
        fitting = floor(stage.rows_seen * grain_seconds / stage.fixed_seconds)
        return min(rows, max(fitting, FEW_ROWS))
    if turn_seconds(stage, rows) <= grain_seconds:
        return rows
    return max(rows_within(stage, rows, grain_seconds), sensible_rows(stage, rows))


def grain_alone(stage: StageView, grain_seconds: float) -> float:
    """How long a turn of a stage that has no other beside it may take.

    Long enough for fixed costs not to count; rows at its beginning are seen no sooner than those at its end,
    so that a target sets a limit.

    >>> grain_alone(StageView("s", "p", 9, 0.0, 0.0), 1.0)
    10.0
    >>> grain_alone(StageView("s", "p", 9, 0.0, 0.0, latency_seconds=30.0), 1.0)
    3.0
    """
    target = inf if stage.latency_seconds is None else stage.latency_seconds
    return max(grain_seconds, min(ALONE_GRAINS * grain_seconds, ALONE_SHARE * target))


def sensible_rows(stage: StageView, rows: int) -> int:
    """The least a turn should take: rows that cost as much as a turn does without any, and one for each slot,
    as fewer would take no less time; or all there are."""
    if stage.row_seconds <= 0.0:
        return rows
    return min(rows, max(floor(stage.slots * stage.fixed_seconds / stage.row_seconds), stage.slots))


def cut_for_urgent(
    stage: StageView,
    rows: int,
    now: float,
    starts: Iterable[Start],
    ends: Sequence[float],
) -> Cut:
    """`rows`, or as many as end before another stage must start that no other slot will be free for.

    `starts` are those of the stages that wait, or are expected; `ends` the times at which the other slots are
    free, now for one that is. The turn is taken to last a little longer than is predicted.
    """
    end = now + SAFETY * turn_seconds(stage, rows)
    # Without the reserves, as stages that are as urgent do not make way for each other.
    line = sorted(each for each in starts if now < each.by and each.by + each.reserve < stage.start_deadline)
    if all_in_time(line, [*ends, end]):
        return Cut(rows)
    last = max((each.by for each in line if each.by < end), default=end)
    slots = 1 + sum(each <= last for each in ends)
    urgent = [each for each in in_line(line, slots) if each.by < end]
    if not urgent:
        return Cut(rows)
    free = sum(each <= urgent[0].by for each in ends)
    if free >= len(urgent):
        return Cut(rows)
    first = urgent[free]
    fitting = rows_within(stage, rows, (first.by - now) / SAFETY)
    # The slot would be idle: a turn of a quarter of what makes sense is better than none.
    return Cut(fitting if 4 * fitting >= sensible_rows(stage, rows) else 0, first.by, first.name)


def cut_for_room(
    stage: StageView,
    rows: int,
    now: float,
    starts: Iterable[Start],
    ends: Sequence[float],
) -> Cut:
    """As `cut_for_urgent`, but so that windows start as soon as they would if this turn were not granted.

    One that should be complete, and is not, will be at any moment.
    """
    line = [each for each in starts if now < each.by and each.by + each.reserve < stage.start_deadline]
    cut = cut_for_urgent(stage, rows, now, soonest(line, [*ends, now], now + ANY_MOMENT_SECONDS), ends)
    return cut if cut.rows >= sensible_rows(stage, rows) else cut.without_rows()


def soonest(starts: Sequence[Start], ends: Iterable[float], at_least: float = -inf) -> list[Start]:
    """The same, to start as soon as they can on slots that are free at these times, in the order of `ready`.

    >>> two = [Start(9.0, "a", 1.0, ready=5.0), Start(9.0, "b", 1.0, ready=5.0)]
    >>> [each.by for each in soonest(two, [1.0])], [each.by for each in soonest(two, [1.0, 2.0])]
    ([5.0, 6.3], [5.0, 5.0])
    """
    free = sorted(ends)
    # Of one that waits for nothing it is not known why it has not started, nor when it will.
    found = [each for each in starts if each.ready == -inf]
    for each in sorted(
        (each for each in starts if each.ready > -inf), key=lambda start: (start.ready, start)
    ):
        begins = max(heappop(free), each.ready)
        heappush(free, begins + SAFETY * each.seconds)
        found.append(each._replace(by=min(max(begins, at_least), each.by)))
    return found


def all_in_time(starts: Iterable[Start], ends: Iterable[float]) -> bool:
    """Whether all can start in time on slots that are free at these times, one after the other.

    One of which it is not known how long it takes has a slot of its own.

    >>> two = [Start(5.0, "a", 0.1), Start(5.0, "b", 0.1)]
    >>> all_in_time(two, [4.8]), all_in_time(two, [4.9])
    (True, False)
    """
    free = sorted(ends)
    for each in sorted(starts):
        if not free or max(free[0], each.ready) > each.by:
            return False
        begins = max(heappop(free), each.ready)
        if each.seconds:
            heappush(free, begins + SAFETY * each.seconds)
    return True


def in_line(starts: Iterable[Start], slots: int) -> list[Start]:
    """By when each must start so that those behind it, on the same slots, can start in time too.

    >>> [each.by for each in in_line([Start(5.0, "a", 0.25), Start(5.0, "b", 0.25), Start(5.0, "c")], 2)]
    [4.75, 5.0, 5.0]
    """
    line = sorted(starts)
    for place in range(len(line) - slots - 1, -1, -1):
        each = line[place]
        line[place] = each._replace(by=min(each.by, line[place + slots].by - each.seconds))
    return sorted(line)
