"""From what was measured of stages to a network of models, each chosen by its recent errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from penstock.measure.slot_figures import SlotFigures, StageSlotFigures
from penstock.model.bulk import BulkService
from penstock.model.dealt import DealtTurns
from penstock.model.dealt_cost import DealtCost
from penstock.model.flow import Read, rates_of, visits
from penstock.model.gigk import GIGk
from penstock.model.mmk import MMk
from penstock.model.network import Network, NetworkStage
from penstock.model.stage_model import ModelError, StageModel
from penstock.model.turn_fit import MeasuredTurn, fitted_together
from penstock.model.turn_network import Inflow, TurnNetwork
from penstock.plan.model_choice import Choice, ModelChoice

TURNS, ALONE = "turns", "alone"
"""All stages together, turn by turn; or each by itself, by the best of the following."""
SINGLE = ("dealt", "dealt-segments", "bulk", "segments", "gigk", "mmk")
"""Bulk service with rows that come singly or in segments, GI/G/k and M/M/k, and turns whose rows are dealt to
tasks whole, singly or in segments."""
MODELS = (TURNS, *SINGLE)
ENTANGLED = 0.02
"""By what visits differ from one where inputs do not all go one way."""
CLEARLY = 0.5
"""Stages are taken by themselves when that was off by at most this share of what turn by turn was,"""
TRUSTED = 0.3
"""and that by more than this: of many models one is always close by chance."""
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


def together(figures: SlotFigures) -> TurnNetwork | None:
    """All stages, turn by turn; None where too little is known of one, or nothing comes to a sink."""
    weights = visits_of(figures) if figures.outside_rows_per_second > 0.0 else {}
    if not weights:
        return None
    turns = {name: [MeasuredTurn(*each) for each in stage.turns] for name, stage in figures.stages.items()}
    costs = fitted_together(turns)
    if costs is None:
        return None
    rows = max(figures.rows_per_input, 1.0)
    # What was measured behind a stage that does not keep up is what that lets through.
    rates = rates_of(_reads(figures), figures.outside_rows_per_second)
    stages = tuple(
        NetworkStage(name, _alone(figures.stages[name], cost, rates[name]), weights[name])
        for name, cost in costs.items()
    )
    inflow = Inflow(figures.outside_rows_per_second / rows, round(rows), figures.input_scv)
    return TurnNetwork(stages, costs, _reads(figures), inflow)


def visits_of(figures: SlotFigures) -> dict[str, float]:
    """How often an input passes each stage; empty where that cannot be told.

    So it is before rows came to a sink, where rows of a loop seem to become more, and where a stage reads
    from one that is not among them.
    """
    try:
        return visits(_reads(figures)) if figures.rows_made else {}
    except (ModelError, KeyError):
        return {}


def measured(figures: SlotFigures) -> tuple[float, int]:
    """E[T^] of the inputs done of late, and how many they are.

    What a turn makes is derived from all it took. So where ways part or lead back, inputs are entangled with
    others, and seem to take longer than they do, or for ever: there what rows stayed at stages is added up.
    """
    weights, inputs = visits_of(figures), figures.inputs
    if not _entangled(weights):
        return inputs.mean_seconds, inputs.inputs_done
    stays = {name: each.sojourn_seconds for name, each in figures.stages.items()}
    done = round(inputs.inputs_per_second) if all(stays[name] > 0.0 for name in weights) else 0
    return _weighted(weights, stays), max(done, inputs.inputs_done if done else 0)


def behind(figures: SlotFigures) -> float:
    """What an input that comes now is in for, by what is open; 0.0 where that cannot be told of inputs."""
    return 0.0 if _entangled(visits_of(figures)) else figures.inputs.behind_seconds


def _entangled(weights: Mapping[str, float]) -> bool:
    return any(abs(weight - 1.0) >= ENTANGLED for weight in weights.values())


def _reads(figures: SlotFigures) -> dict[str, tuple[Read, ...]]:
    return {
        name: tuple(Read(producer, rows) for producer, rows in figures.rows_made.get(name, {}).items())
        for name in figures.stages
    }


def _alone(stage: StageSlotFigures, cost: DealtCost, rate: float) -> DealtTurns:
    """A stage by itself, as rows come to it that cost something."""
    if cost.by_made:
        rate *= sum(each[1] for each in stage.turns) / max(sum(each[0] for each in stage.turns), 1)
    return DealtTurns(rate, cost.fixed_seconds, cost.row_seconds, cost.scv)


@dataclass
class StageModels:
    """Chooses models for the stages of a pipeline, by what they said of the time that rows stayed.

    All stages go together, turn by turn, unless they were clearly better told of one by one, each by the
    model that was closest for it. With `only` one model is used, whatever its errors.
    """

    only: str | None = None
    _whole: ModelChoice = field(default_factory=lambda: ModelChoice((TURNS, ALONE), CLEARLY))
    _choices: dict[str, ModelChoice] = field(default_factory=dict)

    def learn(self, figures: SlotFigures) -> None:
        """Compares what the models say of each stage, as it is, with what was measured of it."""
        seen = {
            name: each for name, each in figures.stages.items() if each.known and each.sojourn_seconds > 0.0
        }
        alone = {}
        for name, stage in seen.items():
            said = {each: model.sojourn_seconds(stage.slots) for each, model in models_of(stage).items()}
            choice = self._choice(name)
            choice.learn(said, stage.sojourn_seconds)
            alone[name] = said.get(choice.best.model, inf)
        joint = self._together(figures)
        slots = {name: stage.slots for name, stage in figures.stages.items()}
        if joint is None or not seen or not joint.keeps_up(slots):
            return
        by_turns = joint.stage_seconds(slots)
        stayed = {name: each.sojourn_seconds for name, each in seen.items()}
        weights = {each.name: each.weight for each in joint.stages if each.name in seen}
        whole = {kind: _weighted(weights, each) for kind, each in ((TURNS, by_turns), (ALONE, alone))}
        self._whole.learn(whole, _weighted(weights, stayed))

    def choices(self, names: Mapping[str, Any]) -> dict[str, Choice]:
        """The model of each stage with the errors that speak for it."""
        whole = self._whole.best
        if self._by_turns and whole.errors:
            return dict.fromkeys(names, Choice(TURNS, whole.errors, whole.reason))
        return {name: self._choice(name).best for name in names}

    def network(self, figures: SlotFigures) -> Network | str:
        """E[T] by the slots of each stage, or why nothing can be said yet."""
        if not figures.stages:
            return "no stage whose slots could change"
        if not figures.outside_rows_per_second > 0.0:
            return "nothing came from outside"
        for name, stage in figures.stages.items():
            if not stage.known:
                return f"nothing is known of {name} yet"
        joint = self._together(figures) if self._by_turns else None
        if joint is not None:
            return joint
        return Network(tuple(self._stage(name, each, figures) for name, each in figures.stages.items()))

    @property
    def _by_turns(self) -> bool:
        whole = self._whole.best
        return whole.model == TURNS or whole.errors[TURNS] <= TRUSTED

    def _together(self, figures: SlotFigures) -> TurnNetwork | None:
        return together(figures) if self.only in (None, TURNS) else None

    def _stage(self, name: str, stage: StageSlotFigures, figures: SlotFigures) -> NetworkStage:
        made = models_of(stage)
        choice = self._choice(name).best.model
        chosen = choice if choice in made else next(iter(made))
        weight = stage.moments.rows_per_second / figures.outside_rows_per_second
        if chosen in BY_TURNS:
            weight = visits_of(figures).get(name) or stage.turns_per_input or weight
        return NetworkStage(name, made[chosen], weight)

    def _choice(self, name: str) -> ModelChoice:
        if name not in self._choices:
            single = self.only in SINGLE
            self._choices[name] = ModelChoice((str(self.only),) if single else SINGLE)
        return self._choices[name]


def _weighted(weights: Mapping[str, float], seconds: Mapping[str, float]) -> float:
    return sum(weight * seconds[name] for name, weight in weights.items())
