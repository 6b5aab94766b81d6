"""Shares of the throughput, by tokens."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf

from penstock.scheduling.contexts import Message, PriorityContext, Target
from penstock.scheduling.policies.context_policy import ContextPolicy
from penstock.scheduling.stage_view import StageView


@dataclass(frozen=True, slots=True)
class TokenShare(ContextPolicy):
    """Gives each tenant its share of `rows_per_second`, and what is left over to whoever has work.

    Proportional fair scheduling of Cameo (NSDI 2021, section 5.4). Every interval, a second, a tenant has a
    token for each row of its share, stamped evenly over it. A message takes a token for each of its rows: the
    stamp of the first is its global priority, the interval its local one. What is over the share has no
    token, and runs when no tokened work waits. Where capacity is short of the tokens, stamps are served in
    their order, so that all tenants fall behind alike; `rows_per_second` should be about what the pool can
    do, or a tenant that starts later waits until the others have come to its stamps. Later stages inherit
    the stamp. A turn takes messages with stamps up to `portion_seconds` apart.
    """

    rows_per_second: float = 100_000.0
    portion_seconds: float = 0.25

    @property
    def portion(self) -> float:
        return self.portion_seconds

    def at_source(self, message: Message, target: Target) -> PriorityContext:
        interval = floor(message.time)
        tokens = (target.share or 0.0) * self.rows_per_second
        # A message may take tokens of the next interval, which then has less.
        used_until = message.before.get("used_until", 0.0)
        stamp = max(float(interval), used_until)
        has_token = tokens > 0.0 and stamp < interval + 1
        return PriorityContext(
            id=message.id,
            pri_local=float(interval) if has_token else inf,
            pri_global=stamp if has_token else message.time,
            progress=message.time if message.progress is None else message.progress,
            time=message.time,
            latency_seconds=target.latency_seconds,
            deferred=not has_token,
            fields={"used_until": stamp + message.rows / tokens if has_token else used_until},
        )

    def at_operator(self, context: PriorityContext, message: Message, target: Target) -> PriorityContext:
        return PriorityContext(
            id=message.id,
            pri_local=context.pri_local,
            pri_global=context.pri_global,
            progress=context.progress,
            time=message.time,
            latency_seconds=target.latency_seconds,
            deferred=context.deferred,
            fields=context.fields,
        )

    def reason(self, stage: StageView) -> str:
        if stage.context is None or stage.context.deferred:
            return "no tokened work waits"
        return f"first token, {stage.context.pri_global % 3600:.2f} s past the hour"
