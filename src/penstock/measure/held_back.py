"""What held a stage back during a minute: its queue, the schedule, its computation, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.measure.minutes import StageMinute

Cause = Literal["nothing", "queue", "schedule", "computation"]

# A stage with time to spare, whose rows were through within this, was held back by nothing.
SPARE_UTILISATION = 0.5
SHORT_WAIT_SECONDS = 0.1
SHORT_STAY_SECONDS = 1.0
OTHERS_NAMED = 3


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The cause, and a sentence with the numbers it was read from."""

    cause: Cause
    sentence: str


def what_held_back(stage: StageMinute, others: Sequence[StageMinute]) -> HeldBack:
    """What the rows of a stage waited for in a minute; `others` are the other stages in the same one.

    The queue (T_Q) where rows waited for turns that took other rows, the schedule (T_S) where they
    were next and the slots were not free, the computation (T_C) where they spent their time in turns.
    """
    figures = stage.figures
    if figures.rows_in == 0:
        return _without_rows(stage, others)
    if _starved(stage):
        return _held(stage, "schedule", _passed_over(stage, others))
    times = (figures.queue_seconds, figures.schedule_seconds, figures.compute_seconds)
    waited, stay = times[0] + times[1], sum(times)
    at_once = waited <= max(figures.compute_seconds, SHORT_WAIT_SECONDS) and stay < SHORT_STAY_SECONDS
    if figures.utilisation < SPARE_UTILISATION and at_once:
        return HeldBack(
            "nothing",
            f"nothing held {stage.stage} back: a row stayed {_seconds(stay)} ({_times(times)}), and "
            f"for {1.0 - figures.utilisation:.0%} of the time none was there",
        )
    cause, share = max(zip(_CAUSES, times, strict=True), key=lambda pair: pair[1])
    told = f"of the {_seconds(stay)} a row stayed, {_part(share, stay)}"
    return _held(stage, cause, f"{told} {_DETAILS[cause](stage, others)} ({_times(times)})")


def _without_rows(stage: StageMinute, others: Sequence[StageMinute]) -> HeldBack:
    """No turn with rows has ended: it still runs, or there was none."""
    figures = stage.figures
    waiting = f"{figures.rows_waiting:,} {'row waits' if figures.rows_waiting == 1 else 'rows wait'}"
    if figures.slot_seconds > 0.5 * figures.seconds:
        running = _seconds(figures.seconds)
        return _held(stage, "computation", f"a turn still ran at the end of these {running}; {waiting}")
    if figures.rows_waiting:
        return _held(stage, "schedule", f"{waiting} and it got no turn{_others(stage, others)}")
    return HeldBack("nothing", f"nothing held {stage.stage} back: no row came")


def _starved(stage: StageMinute) -> bool:
    """Rows waited nearly all the time and most still do, yet it seldom ran: the times of those that got
    through say nothing of the others."""
    figures = stage.figures
    seldom = figures.slot_seconds < 0.5 * figures.seconds
    return figures.rows_waiting > figures.rows_in and seldom and figures.utilisation >= SPARE_UTILISATION


def _passed_over(stage: StageMinute, others: Sequence[StageMinute]) -> str:
    figures = stage.figures
    ran = f"it ran for {_seconds(figures.slot_seconds)} of {_seconds(figures.seconds)}"
    return (
        f"{figures.rows_waiting:,} rows wait at the end, {figures.rows_in:,} were taken, "
        f"and {ran}{_others(stage, others)}"
    )


_CAUSES: tuple[Cause, ...] = ("queue", "schedule", "computation")
_WORDS = {"queue": "its queue", "schedule": "the schedule", "computation": "its computation"}


def _held(stage: StageMinute, cause: Cause, details: str) -> HeldBack:
    return HeldBack(cause, f"{stage.stage} was held back by {_WORDS[cause]}: {details}")


def _queue(stage: StageMinute, others: Sequence[StageMinute]) -> str:
    figures = stage.figures
    taken = figures.rows_in / figures.seconds if figures.seconds > 0.0 else 0.0
    return (
        f"it waited for turns that took other rows: {figures.arrival_rows_per_second:,.0f} rows/s came, "
        f"{taken:,.0f} rows/s were taken, {figures.rows_waiting:,} wait at the end"
    )


def _schedule(stage: StageMinute, others: Sequence[StageMinute]) -> str:
    return f"it was next and waited for a slot{_others(stage, others)}"


def _computation(stage: StageMinute, others: Sequence[StageMinute]) -> str:
    figures = stage.figures
    rows = figures.rows_in / figures.turns
    seconds = rows / figures.service_rows_per_second if figures.service_rows_per_second else 0.0
    turns = f"{figures.turns:,} turns of {rows:,.0f} rows on average took {_seconds(seconds)} each"
    if figures.turns == 1:
        turns = f"1 turn of {rows:,.0f} rows took {_seconds(seconds)}"
    return f"it spent in its own turn: {turns}"


_DETAILS = {"queue": _queue, "schedule": _schedule, "computation": _computation}


def _others(stage: StageMinute, others: Sequence[StageMinute]) -> str:
    """Who had the slots meanwhile, most of them first."""
    most = sorted(others, key=lambda each: (-each.slot_share, each.stage))[:OTHERS_NAMED]
    named = [f"{each.stage} {each.slot_share:.0%}" for each in most if each.slot_share >= 0.005]
    free = 1.0 - stage.slot_share - sum(each.slot_share for each in others)
    slots = "the slot" if stage.pool_slots == 1 else f"the {stage.pool_slots} slots"
    told = f" while others had {slots}: {', '.join(named)} of the time" if named else ""
    if free > 0.5:
        why = "its window was not complete, it was paused, or the queue behind it was full"
        told += f"; {slots} stood free {free:.0%} of it: {why}"
    return told


def _part(seconds: float, stay: float) -> str:
    return f"{_seconds(seconds)} ({seconds / stay:.0%})" if stay > 0.0 else _seconds(seconds)


def _times(times: tuple[float, float, float]) -> str:
    return ", ".join(
        f"{name} {_seconds(each)}" for name, each in zip(("T_Q", "T_S", "T_C"), times, strict=True)
    )


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1.0 else f"{seconds:.1f} s"
