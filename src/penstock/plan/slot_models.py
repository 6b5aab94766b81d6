"""From what was measured of stages to a network of models, each chosen by its recent errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.measure.slot_figures import SlotFigures, StageSlotFigures
from penstock.model.bulk import BulkService
from penstock.model.dealt import DealtTurns
from penstock.model.gigk import GIGk
from penstock.model.mmk import MMk
from penstock.model.network import Network, NetworkStage
from penstock.model.stage_model import StageModel
from penstock.plan.model_choice import Choice, ModelChoice

MODELS = ("dealt", "dealt-segments", "bulk", "segments", "gigk", "mmk")
"""Bulk service with rows that come singly or in segments, GI/G/k and M/M/k, and turns whose rows are dealt to
tasks whole, singly or in segments."""
BY_TURNS = ("bulk", "segments", "dealt", "dealt-segments")
"""Those in which the rows of an input share turns."""


def models_of(figures: StageSlotFigures) -> dict[str, StageModel]:
    """Every model that can be made of what is known of a stage."""
    moments = figures.moments
    rate, served = moments.rows_per_second, moments.slot_rows_per_second
    made: dict[str, StageModel] = {}
    if figures.fixed_seconds > 0.0 or figures.row_seconds > 0.0:
        costs = rate, figures.fixed_seconds, figures.row_seconds, moments.arrival_scv
        made["bulk"] = BulkService(*costs)
        if figures.segment_seconds > 0.0:
            made["segments"] = BulkService(*costs, segment_seconds=figures.segment_seconds)
        # Costs are learned by full rounds: what the slowest task takes is in them, and s is that of turns.
        whole = *costs[:3], 0.0, min(moments.arrival_scv, 1.0)
        spread = moments.service_scv
        made["dealt"] = DealtTurns(*whole, turn_scv=spread)
        if (gap := figures.segment_seconds) > 0.0:
            made["dealt-segments"] = DealtTurns(*whole, segment_seconds=gap, turn_scv=spread)
    if served > 0.0:
        made["gigk"] = GIGk(rate, served, moments.arrival_scv, moments.service_scv)
        made["mmk"] = MMk(rate, served)
    return made


@dataclass
class StageModels:
    """Chooses a model for each stage of a pipeline, by what it said of the time that rows stayed.

    With `only` one of them is used, whatever its errors.
    """

    only: str | None = None
    _choices: dict[str, ModelChoice] = field(default_factory=dict)

    def learn(self, figures: SlotFigures) -> None:
        """Compares what the models say of each stage, as it is, with what was measured of it."""
        for name, stage in figures.stages.items():
            if not stage.known or stage.sojourn_seconds <= 0.0:
                continue
            said = {each: model.sojourn_seconds(stage.slots) for each, model in models_of(stage).items()}
            self._choice(name).learn(said, stage.sojourn_seconds)

    def choices(self, names: Mapping[str, Any]) -> dict[str, Choice]:
        """The model of each stage with the errors that speak for it."""
        return {name: self._choice(name).best for name in names}

    def network(self, figures: SlotFigures) -> Network | str:
        """E[T] by the slots of each stage, or why nothing can be said yet."""
        if not figures.stages:
            return "no stage whose slots could change"
        if not figures.outside_rows_per_second > 0.0:
            return "nothing came from outside"
        stages = []
        for name, stage in figures.stages.items():
            if not stage.known:
                return f"nothing is known of {name} yet"
            stages.append(self._stage(name, stage, figures.outside_rows_per_second))
        return Network(tuple(stages))

    def _stage(self, name: str, stage: StageSlotFigures, outside: float) -> NetworkStage:
        made = models_of(stage)
        best = self._choice(name).best.model
        chosen = best if best in made else next(iter(made))
        weight = stage.moments.rows_per_second / outside
        if chosen in BY_TURNS and stage.turns_per_input > 0.0:
            weight = stage.turns_per_input
        return NetworkStage(name, made[chosen], weight)

    def _choice(self, name: str) -> ModelChoice:
        if name not in self._choices:
            self._choices[name] = ModelChoice((self.only,) if self.only else MODELS)
        return self._choices[name]
