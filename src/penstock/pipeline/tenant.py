"""Whose pipelines they are: a name, what was promised, and a share."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.pipeline.latency import Duration, parse_latency
from penstock.pipeline.nodes import name_mistake


@dataclass(frozen=True)
class Tenant:
    """Owns pipelines. `latency` is the target of its sinks that have none of their own.

    `share` is its part of the throughput, from 0 to 1, under the policy `token-share`; its pipelines have it
    together, in equal parts.
    """

    name: str
    latency: Duration | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if mistake := name_mistake(self.name):
            raise ValueError(mistake)
        if self.latency is not None:
            parse_latency(self.latency)
        if self.share is not None and not 0.0 < self.share <= 1.0:
            raise ValueError(
                f"the share of tenant {self.name!r} must be over 0 and up to 1, got {self.share}: "
                "no token could be given out"
            )
