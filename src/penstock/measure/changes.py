"""Things that were changed while pipelines ran, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

ChangeKind = Literal["slots", "nodes", "plan", "policy", "target", "state", "dead letters"]


@dataclass(frozen=True, slots=True)
class Change:
    """At a time, something became something else: `subject` is a pool, stage, sink, node or pipeline."""

    at: float
    kind: ChangeKind
    subject: str
    became: str
    reason: str = ""

    @property
    def sentence(self) -> str:
        """`target of heat.alarms: 500 ms (asked for)`."""
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.kind} of {self.subject}: {self.became}{why}"

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Change:
        return cls(**stored)
