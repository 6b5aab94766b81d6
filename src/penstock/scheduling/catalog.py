"""The policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.errors import PenstockError
from penstock.scheduling.policies import (
    BatchIt,
    Edf,
    Fifo,
    Llf,
    LongestQueue,
    MinLatency,
    MinMemory,
    Policy,
    Random,
    Sjf,
    TokenShare,
)

POLICIES: Mapping[str, Callable[[], Policy]] = {
    "batchit": BatchIt,
    "edf": Edf,
    "fifo": Fifo,
    "llf": Llf,
    "longest-queue": LongestQueue,
    "min-latency": MinLatency,
    "min-memory": MinMemory,
    "random": Random,
    "sjf": Sjf,
    "token-share": TokenShare,
}


class UnknownPolicy(PenstockError):
    """A name that is not in the catalog."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"a policy must be one of {', '.join(POLICIES)}, got {name!r}: nothing was scheduled"
        )
        self.name = name


def policy_named(name: str) -> Policy:
    """The policy of that name, with its default settings.

    >>> policy_named("longest-queue")
    LongestQueue()
    """
    if name not in POLICIES:
        raise UnknownPolicy(name)
    return POLICIES[name]()
