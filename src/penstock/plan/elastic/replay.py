"""The log: what was seen at each look and what was decided, from which every decision can be made again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.plan.elastic.changes import Decision
from penstock.plan.elastic.elasticity import Elasticity
from penstock.plan.elastic.observation import Observation
from penstock.plan.elastic.state import ElasticState
from penstock.plan.elastic.stored_state import state_from_json, state_to_json


@dataclass(frozen=True)
class Record:
    """One look of the log; now and then with the state before it, so that a log whose beginning is gone
    can still be replayed."""

    seen: Observation
    decisions: tuple[Decision, ...]
    state: ElasticState | None = None

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        state = {} if self.state is None else {"state": state_to_json(self.state)}
        decisions = [each.to_json() for each in self.decisions]
        return {"seen": self.seen.to_json(), "decisions": decisions, **state}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Record:
        return cls(
            Observation.from_json(stored["seen"]),
            tuple(Decision.from_json(each) for each in stored["decisions"]),
            state_from_json(stored["state"]) if "state" in stored else None,
        )


def replay(elasticity: Elasticity, log: Iterable[Record]) -> tuple[Decision, ...]:
    """All decisions, made again from what was seen: those of the log, by the same settings.

    The first record must have the state before it, or be the first look of all.
    """
    state, decisions = ElasticState(), list[Decision]()
    for record in log:
        step = elasticity.step(record.state or state, record.seen)
        state = step.state
        decisions += step.decisions
    return tuple(decisions)
