"""What the scheduler decided, and why: values, a bounded log of them, and two ways to write them down."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice, takewhile
from math import inf
from typing import Any

from penstock.errors import PenstockError
from penstock.scheduling.policies import Policy
from penstock.scheduling.stage_view import StageView


class DecisionError(PenstockError):
    """A stored decision that cannot be read, or a log that could not keep one."""


class WentFirst(StrEnum):
    """Why a stage went before all others, whatever the policy says."""

    NO = ""
    STARVED = "waited longest, its patience was over"
    UNTRIED = "its costs are hardly known, and it has waited for one of its first turns"


@dataclass(frozen=True, slots=True)
class Choice:
    """The reason of a grant as its ingredients; the sentence is made when it is read."""

    policy: Policy
    stage: StageView
    waited_seconds: float
    free_slots: int
    pool_slots: int
    cut_for: str = ""
    went_first: WentFirst = WentFirst.NO
    tried: bool = False
    """Whether no turn should fit by what is known, and few rows tell whether that is so."""

    def __str__(self) -> str:
        work = count(self.stage.rows_waiting, "row") if self.stage.rows_waiting else self._without_rows
        chosen = self.went_first.value or self._reason
        words = [
            f"{chosen}: {work}",
            f"waited {self.waited_seconds:.2f} s",
            f"{self.free_slots} of {count(self.pool_slots, 'slot')} free",
        ]
        if self.cut_for:
            words.append(f"cut so that {self.cut_for} can start in time")
        if self.tried:
            words.append("few rows, as its turns may be shorter than its profile says")
        if self.stage.slots > self.pool_slots:
            words.append(f"needs {count(self.stage.slots, 'slot')}, the pool has {self.pool_slots}")
        return "; ".join(words)

    @property
    def _reason(self) -> str:
        return "slots are idle" if self.stage.starts else self.policy.reason(self.stage)

    @property
    def _without_rows(self) -> str:
        return "its start" if self.stage.starts else "a flush"


@dataclass(frozen=True, slots=True)
class Grant:
    """A stage may run one turn of `rows` rows on `slots` slots; 0 rows are a flush.

    `why` is anything whose `str()` is the reason: a `Choice`, or simply a sentence.
    """

    stage: str
    rows: int
    slots: int
    at: float
    waited_seconds: float
    why: object

    @property
    def reason(self) -> str:
        return str(self.why)

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return {
            "decision": "grant",
            "at": self.at,
            "stage": self.stage,
            "rows": self.rows,
            "slots": self.slots,
            "waited_seconds": self.waited_seconds,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing is granted now. `stage` is the one that would be next, "" if none waits.

    `until` is when to ask again even if nothing happens.
    """

    reason: str
    at: float
    stage: str = ""
    until: float = inf

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return {"decision": "hold", "at": self.at, "stage": self.stage, "reason": self.reason}


Decision = Grant | Hold


class DecisionLog:
    """The last `maxlen` decisions.

    A hold is kept only if its stage or reason differs from the hold before it: every round of
    grants ends with one. Not safe for threads: the caller locks.
    """

    def __init__(self, maxlen: int = 10_000) -> None:
        if maxlen < 1:
            raise DecisionError(
                f"a decision log must keep at least 1 decision, got {maxlen}: nothing could be explained"
            )
        self._decisions: deque[Decision] = deque(maxlen=maxlen)
        self._last_hold = Hold("", 0.0)

    def __len__(self) -> int:
        return len(self._decisions)

    def add(self, decision: Decision) -> None:
        if isinstance(decision, Hold):
            last, self._last_hold = self._last_hold, decision
            if (decision.reason, decision.stage) == (last.reason, last.stage):
                return
        self._decisions.append(decision)

    def recent(self, stage: str | None = None, n: int = 100) -> tuple[Decision, ...]:
        """The last `n` decisions, oldest first; with `stage`, those on that stage only."""
        backwards = (one for one in reversed(self._decisions) if stage is None or one.stage == stage)
        return tuple(islice(backwards, n))[::-1]

    def since(self, time: float) -> tuple[Decision, ...]:
        """The decisions after `time`, oldest first."""
        return tuple(takewhile(lambda one: one.at > time, reversed(self._decisions)))[::-1]


def decision_from_json(stored: Mapping[str, Any]) -> Decision:
    """The decision that `to_json` was called on; a grant's `why` is now its sentence."""
    fields = dict(stored)
    kind = fields.pop("decision", None)
    if kind == "hold":
        return Hold(**fields)
    if kind == "grant":
        return Grant(why=fields.pop("reason"), **fields)
    raise DecisionError(
        f"a stored decision must be a 'grant' or a 'hold', got {kind!r}: it cannot be explained"
    )


def render(decisions: Iterable[Decision]) -> str:
    """One line for each decision: the time of day in UTC, what was decided for whom, why."""
    shown = tuple(decisions)
    width = max((len(one.stage) for one in shown), default=0)
    return "\n".join(_line(one, width) for one in shown)


def _line(decision: Decision, width: int) -> str:
    at = datetime.fromtimestamp(decision.at, UTC).strftime("%H:%M:%S.%f")[:-3]
    if isinstance(decision, Hold):
        return f"{at}  hold   {decision.stage:{width}}  {decision.reason}"
    size = f"{count(decision.rows, 'row')} on {count(decision.slots, 'slot')}"
    return f"{at}  grant  {decision.stage:{width}}  {size} ({decision.reason})"


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 row`, `1,200 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
