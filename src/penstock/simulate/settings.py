"""How a simulation is scheduled, on what, and who else looks at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from penstock.scheduling.consumption import All, Consumption
from penstock.scheduling.policies import Fifo, LongestQueue, MinLatency, MinMemory, Policy, Random
from penstock.simulate.nodes import Node, pool_of
from penstock.simulate.station import Turn

if TYPE_CHECKING:
    from penstock.simulate.simulation import Simulation

WITHOUT_CONTEXTS = (Fifo, LongestQueue, MinLatency, MinMemory, Random)
"""Policies that look at no context, so that none need be made for them."""
WITHOUT_ROWS = (Fifo, MinLatency, MinMemory)
"""Policies whose order does not hang on how many rows wait."""
_ALL = All()
GRAIN_SECONDS, PATIENCE_SECONDS = 1.0, 30.0
"""As an engine has them."""


class Control(Protocol):
    """Looks at a simulation now and then, and may change it: a planner, a controller of slots."""

    every_seconds: float

    def look(self, simulation: Simulation, now: float) -> None: ...

    def turn_ended(self, simulation: Simulation, turn: Turn, now: float) -> None: ...


@dataclass(frozen=True)
class SimulationSettings:
    """How it is scheduled, on what, and the seed of all chance."""

    policy: Policy
    nodes: tuple[Node, ...]
    consumption: Consumption = _ALL
    grain_seconds: float = GRAIN_SECONDS
    patience_seconds: float = PATIENCE_SECONDS
    seed: int = 0
    controls: tuple[Control, ...] = ()
    on_turn: Callable[[Turn], None] | None = None

    @classmethod
    def on_slots(cls, policy: Policy, slots: int, **others: object) -> SimulationSettings:
        """One node with so many slots, which stays."""
        return replace(cls(policy, pool_of(slots)), **others)  # type: ignore[arg-type]
