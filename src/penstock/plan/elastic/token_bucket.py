"""A limit to how much is reconfigured, around any global policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from penstock.plan.elastic.changes import Proposal, Verdict
from penstock.plan.elastic.global_policy import Judged, Memory, OwnChange, refused
from penstock.plan.elastic.nodes import ElasticError


class _Timed(Protocol):
    @property
    def now(self) -> float: ...


View = TypeVar("View", bound=_Timed)
Taken = TypeVar("Taken", bound=_Timed, contravariant=True)


class _Policy(Protocol[Taken]):
    def judge(self, proposals: Sequence[Proposal], view: Taken, memory: Memory) -> Judged: ...


@dataclass(frozen=True)
class TokenBucket(Generic[View]):
    """Every grant takes a token, of which `per_minute` come and at most `most` are kept: E2DF, section 4.2.

    A request to the other side takes one too, as it is there to end in a change.
    """

    policy: _Policy[View]
    per_minute: float = 2.0
    most: float = 4.0

    def __post_init__(self) -> None:
        if not self.per_minute > 0.0 or not self.most >= 1.0:
            raise ElasticError(
                f"a token bucket must fill and hold at least 1 token, got {self.per_minute} a minute and "
                f"{self.most}: nothing would ever be granted"
            )

    def judge(self, proposals: Sequence[Proposal], view: View, memory: Memory) -> Judged:
        tokens, since = memory.get("tokens", (self.most, view.now))
        tokens = min(self.most, tokens + (view.now - since) * self.per_minute / 60.0)
        judged = self.policy.judge(proposals, view, memory)
        verdicts = []
        for verdict in (*judged.verdicts, *(each.verdict for each in judged.own)):
            limited = self._limited(verdict, tokens)
            tokens -= limited.kind != "refused"
            verdicts.append(limited)
        count = len(judged.verdicts)
        own = [
            OwnChange(each.wish, verdict) for each, verdict in zip(judged.own, verdicts[count:], strict=True)
        ]
        return replace(
            judged,
            verdicts=tuple(verdicts[:count]),
            own=tuple(own),
            memory={**judged.memory, "tokens": (tokens, view.now)},
        )

    def _limited(self, verdict: Verdict, tokens: float) -> Verdict:
        if verdict.kind == "refused" or tokens >= 1.0:
            return verdict
        wait = (1.0 - tokens) * 60.0 / self.per_minute
        return refused(f"{self.per_minute:g} reconfigurations a minute are used up, the next in {wait:.0f} s")
