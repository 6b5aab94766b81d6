"""The loop of all managers: look, decide, act, and keep what was decided."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from math import inf

from penstock.act.actuator import Actuator
from penstock.plan.elastic import Elasticity, ElasticState, Failure, Observation, Record, Step

log = logging.getLogger("penstock")

LOOK_SECONDS = 1.0
"""The most between two calls of a loop; the least is a twentieth of that."""
STATE_EVERY = 100
"""Looks: a log of which the beginning is gone can be replayed from the next of them."""


class ElasticLoop:
    """Called when a manager is due, or a second later; those whose time has not come do nothing."""

    def __init__(
        self,
        elasticity: Elasticity,
        observe: Callable[[float], Observation],
        actuator: Actuator,
        keep: Callable[[Record], object] = lambda record: None,
        state: ElasticState | None = None,
    ):
        """`keep` is handed every look; `state` is where another loop ended, if it is to go on from there."""
        self.elasticity = elasticity
        """May be replaced between looks, as pipelines come and go."""
        self.state = state or ElasticState()
        self._looks = 0
        self._observe, self._actuator, self._keep = observe, actuator, keep
        self._failures: tuple[Failure, ...] = ()

    def next_look(self, now: float) -> float:
        """When to call it again. Late looks would make every period longer than it is."""
        due = min(self.state.due.values(), default=inf)
        return min(max(due, now + LOOK_SECONDS / 20), now + LOOK_SECONDS)

    def look(self, now: float) -> Step | None:
        """One look, if any manager is due; None if none is."""
        if now < min(self.state.due.values(), default=now) - 1e-6:
            return None
        seen = replace(self._observe(now), failures=self._failures)
        step = self.elasticity.step(self.state, seen)
        before, self.state = self.state, step.state
        self._keep(Record(seen, step.decisions, before if self._looks % STATE_EVERY == 0 else None))
        self._looks += 1
        for each in step.decisions:
            log.info(
                "%s manager of %s: %s %s: %s", each.level, each.manager, each.kind, each.change, each.reason
            )
        self._failures = tuple(self._actuator.apply(step.actions, step.state))
        return step
