"""The one interface of all models: E[T_i](k)."""

from __future__ import annotations

from math import floor, inf
from typing import Protocol

from penstock.errors import PenstockError


class ModelError(PenstockError):
    """A model of something that cannot be."""


class StageModel(Protocol):
    """How long a row stays at one stage, by the slots it has.

    Two properties stand beside the one verb: a greedy allocation starts from the least slots that keep up,
    and a target is out of reach if it lies below what any number of slots leads to.
    """

    @property
    def busy_slots(self) -> float:
        """Slots that must be busy on average for the stage to keep up; it does with more than that."""
        ...

    @property
    def floor_seconds(self) -> float:
        """What a row stays with slots without end."""
        ...

    def sojourn_seconds(self, slots: int) -> float:
        """E[T_i](k): mean seconds from a row's arrival until it is processed; inf if rows pile up."""
        ...


def least_slots(model: StageModel) -> int:
    """The fewest slots with which the stage keeps up: floor(lambda/mu) + 1."""
    return floor(model.busy_slots) + 1


def check_number(what: str, value: float, least: float, follows: str, *, above: bool = False) -> None:
    """Refuses a figure that is not finite or lies below `least` (or at it, with `above`)."""
    if least <= value < inf and not (above and value == least):
        return
    rule = "positive" if above and least == 0.0 else f"over {least:g}" if above else f"{least:g} or more"
    raise ModelError(f"{what} must be {rule} and finite, got {value}: {follows}")
