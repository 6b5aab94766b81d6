"""All stages together: the total sojourn time of an input (DRS, equation 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from math import inf

from penstock.model.stage_model import ModelError, StageModel, check_number, least_slots


@dataclass(frozen=True)
class NetworkStage:
    """A stage, or a pool of stages, with its weight."""

    name: str
    model: StageModel
    weight: float = 1.0
    """How often an input pays E[T_i]: lambda_i/lambda_0, or turns per input where its rows share turns."""

    def __post_init__(self) -> None:
        check_number(f"the weight of stage {self.name!r}", self.weight, 0.0, "no input is negative")

    def scaled(self, factor: float) -> NetworkStage:
        """With so many times the rows, where the model tells of one stage."""
        rate = getattr(self.model, "rows_per_second", None)
        if rate is None or not is_dataclass(self.model):
            return self
        return replace(self, model=replace(self.model, rows_per_second=factor * rate))

    @property
    def stepped(self) -> bool:
        """Whether E[T_i] may fall by steps, and so is not convex in slots."""
        return bool(getattr(self.model, "stepped", False))

    def weighted_seconds(self, slots: int) -> float:
        """What the stage adds to E[T]."""
        return self.weight * self.model.sojourn_seconds(slots) if self.weight else 0.0


@dataclass(frozen=True)
class Network:
    """E[T](k) = sum of weight_i E[T_i](k_i).

    >>> from penstock.model.mmk import MMk
    >>> models = {"read": MMk(10.0, 20.0), "match": MMk(20.0, 8.0)}
    >>> network = Network.of(models, {"read": 10.0, "match": 20.0}, outside_per_second=10.0)
    >>> round(network.sojourn_seconds({"read": 1, "match": 4}), 4)
    0.4033
    """

    stages: tuple[NetworkStage, ...]

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) < len(names):
            raise ModelError(
                f"a network must have stages of different names, got {names}: no slots could be given to one"
            )

    @classmethod
    def of(
        cls,
        models: Mapping[str, StageModel],
        rates: Mapping[str, float],
        outside_per_second: float,
        turns_per_input: Mapping[str, float] | None = None,
    ) -> Network:
        """Weights from rates, lambda_i/lambda_0, except where `turns_per_input` has been measured."""
        check_number("the rate of inputs", outside_per_second, 0.0, "no input would ever be done", above=True)
        turns = turns_per_input or {}
        return cls(
            tuple(
                NetworkStage(name, model, turns.get(name, rates.get(name, 0.0) / outside_per_second))
                for name, model in models.items()
            )
        )

    @property
    def separable(self) -> bool:
        """Whether the slots of one stage change nothing at another."""
        return True

    @cached_property
    def busy_slots(self) -> float:
        """Of all stages."""
        return sum(stage.model.busy_slots for stage in self.stages)

    @cached_property
    def floor_seconds(self) -> float:
        """E[T] with slots without end: for M/M/k and GI/G/k (1/lambda_0) sum(lambda_i/mu_i)."""
        return sum(stage.weight * stage.model.floor_seconds for stage in self.stages)

    @cached_property
    def least_slots(self) -> dict[str, int]:
        """The fewest slots of each stage with which no queue grows without end."""
        return {stage.name: least_slots(stage.model) for stage in self.stages}

    def sojourn_seconds(self, slots: Mapping[str, int]) -> float:
        """E[T] for slots by stage; inf if a queue grows without end."""
        return sum(stage.weighted_seconds(slots[stage.name]) for stage in self.stages)

    def stage_seconds(self, slots: Mapping[str, int]) -> dict[str, float]:
        """E[T_i] of a row at each stage, without its weight."""
        return {stage.name: stage.model.sojourn_seconds(slots[stage.name]) for stage in self.stages}

    def gain_seconds(self, slots: Mapping[str, int]) -> dict[str, float]:
        """What one more slot for a stage spares of E[T]; inf where the stage cannot keep up."""
        return {
            stage.name: spared(
                stage.weighted_seconds(slots[stage.name]), stage.weighted_seconds(slots[stage.name] + 1)
            )
            for stage in self.stages
        }

    def scaled(self, factor: float) -> Network:
        """The same with so many times the rows; a pool of stages stays as it is."""
        return replace(self, stages=tuple(each.scaled(factor) for each in self.stages))

    def utilisation(self, slots: Mapping[str, int]) -> dict[str, float]:
        """Of each stage's slots, the share that must be busy to keep up."""
        return {stage.name: stage.model.busy_slots / slots[stage.name] for stage in self.stages}


def spared(now: float, then: float) -> float:
    """What more slots spare; a stage that cannot keep up comes before all others."""
    return inf if now == inf else now - then
