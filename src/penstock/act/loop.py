"""The loop of all managers: look, decide, act, and keep what was decided."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.act.actuator import Actuator
from penstock.plan.elastic import Elasticity, ElasticState, Observation, Record, Step

log = logging.getLogger("penstock")


class ElasticLoop:
    """Called every second or so; managers whose time has not come do nothing."""

    def __init__(
        self,
        elasticity: Elasticity,
        observe: Callable[[float], Observation],
        actuator: Actuator,
        keep: Callable[[Record], object] = lambda record: None,
    ):
        """`keep` is handed every look at which a manager was due or something was seen."""
        self.elasticity = elasticity
        """May be replaced between looks, as pipelines come and go."""
        self.state = ElasticState()
        self._observe, self._actuator, self._keep = observe, actuator, keep

    def look(self, now: float) -> Step | None:
        """One look, if any manager is due; None if none is."""
        if now < min(self.state.due.values(), default=now) - 1e-6:
            return None
        seen = self._observe(now)
        step = self.elasticity.step(self.state, seen)
        self.state = step.state
        self._keep(Record(seen, step.decisions))
        for each in step.decisions:
            log.info(
                "%s manager of %s: %s %s: %s", each.level, each.manager, each.kind, each.change, each.reason
            )
        self._actuator.apply(step.actions, step.state)
        return step
