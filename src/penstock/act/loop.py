"""The loop of all managers: look, decide, act, and keep what was decided."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.act.actuator import Actuator
from penstock.plan.elastic import Elasticity, ElasticState, Observation, Record, Step

log = logging.getLogger("penstock")

STATE_EVERY = 100
"""Looks: a log of which the beginning is gone can be replayed from the next of them."""


class ElasticLoop:
    """Called every second or so; managers whose time has not come do nothing."""

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

    def look(self, now: float) -> Step | None:
        """One look, if any manager is due; None if none is."""
        if now < min(self.state.due.values(), default=now) - 1e-6:
            return None
        seen = self._observe(now)
        step = self.elasticity.step(self.state, seen)
        before, self.state = self.state, step.state
        self._keep(Record(seen, step.decisions, before if self._looks % STATE_EVERY == 0 else None))
        self._looks += 1
        for each in step.decisions:
            log.info(
                "%s manager of %s: %s %s: %s", each.level, each.manager, each.kind, each.change, each.reason
            )
        self._actuator.apply(step.actions, step.state)
        return step
