"""The log: what was seen at each look and what was decided, from which every decision can be made again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.plan.elastic.changes import Decision
from penstock.plan.elastic.elasticity import Elasticity
from penstock.plan.elastic.observation import Observation
from penstock.plan.elastic.state import ElasticState


@dataclass(frozen=True)
class Record:
    """One look of the log."""

    seen: Observation
    decisions: tuple[Decision, ...]

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return {"seen": self.seen.to_json(), "decisions": [each.to_json() for each in self.decisions]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Record:
        return cls(
            Observation.from_json(stored["seen"]),
            tuple(Decision.from_json(each) for each in stored["decisions"]),
        )


def replay(
    elasticity: Elasticity, log: Iterable[Record], start: ElasticState | None = None
) -> tuple[Decision, ...]:
    """All decisions, made again from what was seen: those of the log, by the same settings and start."""
    state, decisions = start or ElasticState(), list[Decision]()
    for record in log:
        step = elasticity.step(state, record.seen)
        state = step.state
        decisions += step.decisions
    return tuple(decisions)
