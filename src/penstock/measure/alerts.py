"""What somebody should be told of: missed targets, stages that failed or do not move, brokers away, disks.

Values in, alerts with reasons out; who looks, and how often, is the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from penstock.measure.promises import ENOUGH_IN_TIME
from penstock.pipeline.latency import format_seconds

AlertKind = Literal["target", "failed", "stuck", "slow", "away", "budget", "disk"]
Severity = Literal["warning", "critical"]
KINDS: tuple[AlertKind, ...] = get_args(AlertKind)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

STUCK_SECONDS = 4.0
"""A stage that stands for so long may be stuck; looked at every 3 s, it is told within 10 s."""
STUCK_TIMES = 5.0
"""A turn that takes so many times as long as its stage's turns do is stuck."""
SLOW_TIMES = 2.0
"""One that takes so many times as long is slow: it may be stuck, or have more to do than others."""
OVERDUE_SECONDS = 6.0
"""Or one that should have ended so long ago, so that it is told within 10 s of when it should have."""
AWAY_SECONDS = 6.0
"""A broker may be away for so long: at the start it is not there yet, and one that restarts is soon back."""
FIRST_TURN_SECONDS = 30.0
"""What the first turn may take, of which nothing is known."""
BADLY_LATE = 0.5
BUDGET_NEAR, BUDGET_SPENT = 0.9, 1.0
DISK_NEAR, DISK_FULL = 0.10, 0.03
"""Share that is still free."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Something is wrong with `subject` since a time; `reason` is a sentence with numbers."""

    kind: AlertKind
    severity: Severity
    subject: str
    reason: str
    since: float

    @property
    def key(self) -> str:
        """One alert of a kind about a subject is there at a time."""
        return f"{self.kind} {self.subject}"


@dataclass(frozen=True, slots=True)
class SinkSeen:
    """A sink over the last minute."""

    name: str
    target_seconds: float | None
    results: float
    in_time: float
    p99_seconds: float


@dataclass(frozen=True, slots=True)
class StageSeen:
    """A stage now. `still_seconds`: for how long rows have waited without a turn beginning or ending."""

    name: str
    rows_waiting: int
    still_seconds: float
    turn_seconds: float | None
    usual_seconds: float | None
    may_run: bool
    waits_on_purpose: bool = False
    target_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AwaySeen:
    """A source, a sink or a topic between stages whose broker is not there, and for how long so far."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class BudgetSeen:
    """A privacy budget: the product it is for, and what the subject that has spent most has spent of it."""

    product: str
    share_spent: float


@dataclass(frozen=True, slots=True)
class DiskSeen:
    """The disk that a directory lies on."""

    path: str
    free_bytes: int
    total_bytes: int

    @property
    def share_free(self) -> float:
        return self.free_bytes / self.total_bytes if self.total_bytes else 1.0


def missed_targets(sinks: Iterable[SinkSeen], now: float) -> list[Alert]:
    """An alert for each sink with fewer than 95% of the last minute's results in time."""
    found = []
    for sink in sinks:
        if sink.target_seconds is None or not sink.results or sink.in_time >= ENOUGH_IN_TIME:
            continue
        p99 = format_seconds(float(f"{sink.p99_seconds:.3g}"))
        found.append(
            Alert(
                "target",
                "critical" if sink.in_time < BADLY_LATE else "warning",
                sink.name,
                f"{sink.in_time:.0%} of the last minute's results came within "
                f"{format_seconds(sink.target_seconds)}; p99 is {p99}",
                now,
            )
        )
    return found


def failed_pipelines(failures: Iterable[tuple[str, str]], now: float) -> list[Alert]:
    """An alert for each pipeline that has stopped by an error: (name, reason)."""
    return [Alert("failed", "critical", name, f"it has stopped: {reason}", now) for name, reason in failures]


def stuck_stages(stages: Iterable[StageSeen], free_slots: int, now: float) -> list[Alert]:
    """An alert for each stage in a turn that does not end, or with rows and free slots and no turn.

    One that is paused, has no room behind it or waits on purpose (for a batch to fill) is not stuck.
    """
    alerts = (_stuck(stage, free_slots, now) for stage in stages)
    return [alert for alert in alerts if alert is not None]


def _stuck(stage: StageSeen, free_slots: int, now: float) -> Alert | None:
    if stage.turn_seconds is not None:
        if stage.turn_seconds <= _stuck_after(stage.usual_seconds):
            return None
        usual = stage.usual_seconds
        known = "what its turns take is not known yet" if usual is None else f"its turns take {usual:.2g} s"
        told = f"a turn runs for {stage.turn_seconds:.0f} s; {known}"
    elif stage.rows_waiting and stage.may_run and free_slots > 0 and not stage.waits_on_purpose:
        if stage.still_seconds <= STUCK_SECONDS:
            return None
        waits = f"{stage.rows_waiting:,} rows wait"
        told = f"{waits} and it got no turn for {stage.still_seconds:.0f} s, with slots free"
    else:
        return None
    return Alert("stuck", "critical", stage.name, told, now)


def _stuck_after(usual_seconds: float | None) -> float:
    return FIRST_TURN_SECONDS if usual_seconds is None else max(STUCK_SECONDS, STUCK_TIMES * usual_seconds)


def slow_stages(stages: Iterable[StageSeen], free_slots: int, now: float) -> list[Alert]:
    """A warning for each stage that may be stuck, before it is sure.

    Its turn takes much longer than its turns do, or it stands in line for more than twice its target
    though slots are free. While its turns are its first, which are cold, nothing is said.
    """
    alerts = (_slow(stage, free_slots, now) for stage in stages)
    return [alert for alert in alerts if alert is not None]


def _slow(stage: StageSeen, free_slots: int, now: float) -> Alert | None:
    turn, usual, target = stage.turn_seconds, stage.usual_seconds, stage.target_seconds
    if usual is None:
        return None
    if turn is not None:
        if not _slow_after(usual) < turn <= _stuck_after(usual):
            return None
        told = f"slow turn: it runs for {turn:.0f} s; its turns take {usual:.2g} s"
    elif stage.rows_waiting and stage.may_run and free_slots > 0 and stage.waits_on_purpose and target:
        if stage.still_seconds <= max(STUCK_SECONDS, SLOW_TIMES * target):
            return None
        told = (
            f"{stage.rows_waiting:,} rows wait in line for {stage.still_seconds:.0f} s, with slots free; "
            f"the target is {format_seconds(target)}"
        )
    else:
        return None
    return Alert("slow", "warning", stage.name, told, now)


def _slow_after(usual_seconds: float) -> float:
    return max(STUCK_SECONDS, min(SLOW_TIMES * usual_seconds, usual_seconds + OVERDUE_SECONDS))


def away_brokers(away: Iterable[AwaySeen], now: float) -> list[Alert]:
    """A warning for each source, sink or topic whose broker is not there, whether rows wait or not."""
    return [
        Alert(
            "away",
            "warning",
            each.name,
            f"its broker has been away for {each.seconds:.0f} s: no rows go through it, and it is looked for",
            now,
        )
        for each in away
        if each.seconds > AWAY_SECONDS
    ]


def spent_budgets(budgets: Iterable[BudgetSeen], now: float) -> list[Alert]:
    """An alert for each privacy budget of which 90% or more is spent."""
    return [
        Alert(
            "budget",
            "critical" if each.share_spent >= BUDGET_SPENT else "warning",
            each.product,
            f"{each.share_spent:.0%} of the privacy budget is spent by the subject that spent most; "
            "windows are released without whoever cannot pay",
            now,
        )
        for each in budgets
        if each.share_spent >= BUDGET_NEAR
    ]


def full_disks(disks: Iterable[DiskSeen], now: float) -> list[Alert]:
    """An alert for each disk with less than 10% free."""
    return [
        Alert(
            "disk",
            "critical" if disk.share_free < DISK_FULL else "warning",
            disk.path,
            f"{disk.share_free:.0%} of the disk is free ({disk.free_bytes / 1e9:,.1f} GB): "
            "turns that write there fail when it is full",
            now,
        )
        for disk in disks
        if disk.share_free < DISK_NEAR
    ]


@dataclass(frozen=True, slots=True)
class Turnover:
    """The alerts that are there now, and which of them are new and which have gone."""

    alerts: tuple[Alert, ...]
    began: tuple[Alert, ...] = ()
    ended: tuple[Alert, ...] = ()


def follow(before: Sequence[Alert], now: Sequence[Alert]) -> Turnover:
    """The alerts of this look, each since it was first seen.

    >>> a = Alert("disk", "warning", "/data", "5% free", since=10.0)
    >>> later = follow([a], [replace(a, reason="4% free", since=20.0)])
    >>> later.alerts[0].since, later.began, later.ended
    (10.0, (), ())
    """
    known = {alert.key: alert for alert in before}
    kept = tuple(
        replace(alert, since=known[alert.key].since) if alert.key in known else alert for alert in now
    )
    keys = {alert.key for alert in now}
    return Turnover(
        kept,
        tuple(alert for alert in kept if alert.key not in known),
        tuple(alert for alert in before if alert.key not in keys),
    )
