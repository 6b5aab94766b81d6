"""Why no slots could be given, with the numbers and what would help."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.model.network import Network

if TYPE_CHECKING:
    from penstock.plan.slots import SlotPlan

HALVINGS = 40
NAMED = 3
"""Stages that a message tells of."""


class SlotError(PenstockError):
    """No allocation does what was asked for."""


class TooFewSlotsError(SlotError):
    """Fewer slots than it takes for every stage to keep up."""

    def __init__(self, slots: int, network: Network):
        least = network.least_slots
        self.slots, self.needed = slots, sum(least.values())
        self.held_share = _held_share(network, slots)
        """Of the load, what these slots would hold."""
        helps = f"{self.needed - slots} more"
        if self.held_share > 0.0:
            helps += f", or {floor(100 * self.held_share)}% of the load"
        super().__init__(
            f"the stages must have at least {self.needed} slots ({_named(least)}), got {slots}: "
            f"queues would grow without end; needed: {helps}"
        )


class TargetOutOfReachError(SlotError):
    """A latency target that no allocation meets, or none within the slots there are."""

    def __init__(self, target_seconds: float, network: Network, best: SlotPlan | None):
        self.target_seconds, self.floor_seconds, self.best = target_seconds, network.floor_seconds, best
        if best is None:
            parts = {each.name: each.weight * each.model.floor_seconds for each in network.stages}
            name = max(parts, key=lambda name: parts[name])
            super().__init__(
                f"a latency target must be at least {self.floor_seconds:.4g} s, which the work alone takes, "
                f"got {target_seconds:.4g} s: no number of slots meets it; needed: a longer target, or less "
                f"work for an input, most of which is at {name} ({parts[name]:.4g} s)"
            )
            return
        super().__init__(
            f"a latency target must be one that {best.total} slots can meet, got {target_seconds:.4g} s "
            f"where they lead to {best.sojourn_seconds:.4g} s: rows would be late; needed: a target of "
            f"{best.sojourn_seconds:.4g} s, more slots (first at {best.helps_most}), or less load"
        )


def _named(least: dict[str, int]) -> str:
    """The stages that need most."""
    most = sorted(least, key=lambda name: -least[name])
    told = ", ".join(f"{name} {least[name]}" for name in most[:NAMED])
    return told + (f" and {len(most) - NAMED} others" if len(most) > NAMED else "")


def _held_share(network: Network, slots: int) -> float:
    """The largest share of the load for which the slots are enough; 0 where there are fewer than stages."""
    if slots < len(network.stages):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        needed = sum(floor(middle * stage.model.busy_slots) + 1 for stage in network.stages)
        low, high = (middle, high) if needed <= slots else (low, middle)
    return low
