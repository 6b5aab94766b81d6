"""What models say of slots, from what the engine measured: each kind by itself, and the chosen one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

from penstock.measure.slot_figures import SlotFigures
from penstock.model.network import Network
from penstock.model.turn_network import TurnNetwork
from penstock.plan.slot_errors import SlotError
from penstock.plan.slot_models import MODELS, StageModels
from penstock.plan.slots import assign_processors

CHOSEN, STEADY = "chosen", "steady"
"""What the chosen model says of the time that is measured, and of the long run."""
KINDS = (CHOSEN, *MODELS)
Turns = tuple[tuple[int, int, int, float], ...]
"""Rows in and out, slots and seconds of each."""
CASE = ("topology", "rates", "gaps", "scv", "work", "control")
"""What runs have in common whose turns cost alike."""
Spell = tuple[float, float]
"""How many seconds inputs come, from nothing; and how many of them do not count."""


class Predictions:
    """Learns as the engine's controller does, interval by interval; names are those of stages alone.

    A controller that has changed slots knows turns with those before, too: `earlier` has them by stage.
    """

    def __init__(self, earlier: Mapping[str, Turns] | None = None) -> None:
        self._earlier = earlier or {}
        self._models = {kind: StageModels(None if kind == CHOSEN else kind) for kind in KINDS}
        self._figures: SlotFigures | None = None
        self._made: dict[str, Network] | None = None

    def learn(self, figures: SlotFigures | None) -> bool:
        """Takes in an interval that has ended; whether it was a new one."""
        if figures is None or (self._figures is not None and figures.at <= self._figures.at):
            return False
        figures = replace(
            figures,
            stages={
                name: replace(each, turns=(*self._earlier.get(_short(name), ()), *each.turns))
                for name, each in figures.stages.items()
            },
        )
        self._figures, self._made = figures, None
        for models in self._models.values():
            models.learn(figures)
        return True

    @property
    def turns(self) -> dict[str, Turns]:
        """All that is known, by stage."""
        stages = {} if self._figures is None else self._figures.stages
        return {_short(name): each.turns for name, each in stages.items()}

    def seconds(self, slots: Mapping[str, int], spell: Spell | None = None) -> dict[str, float | None]:
        """E[T] by each kind of model; None where a queue would grow without end, or nothing is known.

        Of a spell, if one is named, models that go through turns tell what it will be, also where queues
        grow; the others know the long run alone.
        """
        found: dict[str, float | None] = {}
        for kind, network in self._networks().items():
            named = {each.name: slots[_short(each.name)] for each in network.stages}
            told = {kind: network.sojourn_seconds(named)}
            if kind == CHOSEN:
                told[STEADY] = told[kind]
            if spell is not None and isinstance(network, TurnNetwork):
                told[kind] = network.sojourn_in_spell(named, *spell)
            found |= {each: seconds if seconds < inf else None for each, seconds in told.items()}
        return found

    def plans(self, most_slots: int) -> dict[str, Any]:
        """The allocation that each kind of model recommends, or why there is none."""
        found: dict[str, Any] = {}
        for kind, network in self._networks().items():
            try:
                plan = assign_processors(network, most_slots)
                slots = {_short(name): each for name, each in plan.slots.items()}
                found[kind] = {"slots": slots, "seconds": plan.sojourn_seconds}
            except SlotError as error:
                found[kind] = {"error": str(error)}
        return found

    def chosen(self) -> dict[str, str]:
        """The model of each stage."""
        if self._figures is None:
            return {}
        choices = self._models[CHOSEN].choices(self._figures.stages)
        return {_short(name): each.model for name, each in choices.items()}

    def _networks(self) -> dict[str, Network]:
        if self._figures is None:
            return {}
        if self._made is None:
            made = {kind: models.network(self._figures) for kind, models in self._models.items()}
            self._made = {kind: each for kind, each in made.items() if isinstance(each, Network)}
        return self._made


class LastRun:
    """What the last run was, and what it has told; the next one of the same case knows its turns."""

    def __init__(self) -> None:
        self.predictions = Predictions()
        self._case: Mapping[str, Any] = {}

    def earlier_turns(self, request: Mapping[str, Any]) -> Mapping[str, Turns]:
        """Of runs before this one that differ in their slots only."""
        return self.predictions.turns if _case_of(request) == self._case else {}

    def keep(self, request: Mapping[str, Any], predictions: Predictions) -> None:
        self.predictions, self._case = predictions, _case_of(request)


def _case_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: request.get(key) for key in CASE}


def _short(name: str) -> str:
    return name.rpartition(".")[2]
