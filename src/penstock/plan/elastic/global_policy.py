"""What the policies of application and infrastructure managers have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.plan.elastic.changes import Verdict, Wish

Memory = Mapping[str, tuple[float, ...]]
"""What a policy remembers between looks."""


@dataclass(frozen=True)
class OwnChange:
    """A change that nobody below proposed."""

    wish: Wish
    verdict: Verdict


@dataclass(frozen=True)
class Judged:
    """A verdict on each proposal in turn, then what the manager wants itself."""

    verdicts: tuple[Verdict, ...]
    own: tuple[OwnChange, ...] = ()
    memory: Memory = field(default_factory=dict)
    needs: Mapping[str, int] = field(default_factory=dict)
    """Slots by region that a pipeline will need soon, for the infrastructure manager."""


def granted(reason: str) -> Verdict:
    return Verdict("granted", reason)


def refused(reason: str) -> Verdict:
    return Verdict("refused", reason)


def asked(reason: str) -> Verdict:
    return Verdict("asked", reason)
