"""From what was measured of stages to a network of models, each chosen by its recent errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from penstock.measure.slot_figures import SlotFigures, StageSlotFigures
from penstock.model.bulk import BulkService
from penstock.model.dealt import DealtTurns
from penstock.model.dealt_cost import DealtCost
from penstock.model.flow import Read, entangled, rates_of, visits
from penstock.model.gigk import GIGk
from penstock.model.mmk import MMk
from penstock.model.network import Network, NetworkStage
from penstock.model.shared_pool import PoolMember, SharedPool
from penstock.model.stage_model import ModelError, StageModel
from penstock.model.turn_fit import MeasuredTurn, fitted_together
from penstock.model.turn_network import Inflow, TurnNetwork
from penstock.plan.model_choice import Choice, ModelChoice
from penstock.plan.slots import MOST_SLOTS

TURNS, ALONE = "turns", "alone"
"""All stages together, turn by turn; or each by itself, by the best of the following."""
SINGLE = ("dealt", "dealt-segments", "bulk", "segments", "gigk", "mmk")
"""Bulk service with rows that come singly or in segments, GI/G/k and M/M/k, and turns whose rows are dealt to
tasks whole, singly or in segments."""
MODELS = (TURNS, *SINGLE)
POOL = "pool"
"""Slots that all stages share, where there are fewer than stages."""
QUIET = 1e-3
"""Rows a second, smoothed, below which a stage idles."""
CLEARLY = 0.5
"""Stages are taken by themselves when that was off by at most this share of what turn by turn was,"""
TRUSTED = 0.3
"""and that by more than this,"""
LEAST = 8
"""over so many intervals."""
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
    weights, reads = visits_of(figures), _reads(figures)
    if not weights or not figures.outside_rows_per_second > 0.0:
        return None
    turns = {name: [MeasuredTurn(*each) for each in stage.turns] for name, stage in figures.stages.items()}
    costs = fitted_together(turns)
    if costs is None:
        return None
    rows = max(figures.rows_per_input, 1.0)
    # What was measured behind a stage that does not keep up is what that lets through.
    rates = rates_of(reads, figures.sources)
    stages = tuple(
        NetworkStage(name, _alone(figures.stages[name], cost, rates[name]), weights[name])
        for name, cost in costs.items()
    )
    inputs = figures.outside_rows_per_second / rows
    inflow = Inflow(inputs, round(rows), figures.input_scv, figures.sources)
    return TurnNetwork(stages, costs, reads, inflow)


def visits_of(figures: SlotFigures) -> dict[str, float]:
    """How often an input passes each stage; empty where that cannot be told.

    So it is before rows came to a sink, where rows of a loop seem to become more, and where a stage reads
    from one that is not among them.
    """
    sources = figures.sources
    if not any(sources.values()):
        # Nothing comes of late: all ways count alike.
        sources = dict.fromkeys(sources, 1.0)
    try:
        return visits(_reads(figures), sources) if figures.rows_made else {}
    except (ModelError, KeyError):
        return {}


def measured(figures: SlotFigures) -> tuple[float, int]:
    """E[T^] of the inputs done of late, and how many they are, or at least 1.

    What a turn makes is derived from all it took. So where rows go one of several ways or lead back, inputs
    are entangled with others, and seem to take longer than they do, or for ever: there what rows stayed at
    stages is added up. A pipeline that idles takes no time.
    """
    weights, inputs = visits_of(figures), figures.inputs
    if idles(figures):
        return 0.0, 1
    if not weights or not entangled(_reads(figures)):
        return inputs.mean_seconds, inputs.inputs_done
    stays = {name: each.sojourn_seconds for name, each in figures.stages.items()}
    done = ceil(inputs.inputs_per_second) if all(stays[name] > 0.0 for name in weights) else 0
    return _weighted(weights, stays), max(done, inputs.inputs_done if done else 0)


def behind(figures: SlotFigures) -> float:
    """What an input that comes now is in for, by what is open; 0.0 where that cannot be told of inputs."""
    return 0.0 if entangled(_reads(figures)) else figures.inputs.behind_seconds


def idles(figures: SlotFigures) -> bool:
    """Whether nothing came of late, to any stage, and nothing is left of what came before."""
    quiet = all(each.moments.rows_per_second < QUIET for each in figures.stages.values())
    return quiet and not figures.inputs.inputs_per_second and not figures.inputs.inputs_open


def idle_network(figures: SlotFigures) -> Network:
    """E[T] of a single input, which shares no turn: more slots than one for each stage spare nothing."""
    weights = visits_of(figures)
    return Network(
        tuple(
            NetworkStage(name, _lone(stage), _turns(weights, name, stage) or 1.0)
            for name, stage in figures.stages.items()
        )
    )


def _lone(stage: StageSlotFigures) -> DealtTurns:
    fixed, row = stage.fixed_seconds, stage.row_seconds
    if not fixed + row > 0.0:
        row = 1.0 / stage.moments.slot_rows_per_second
    return DealtTurns(0.0, fixed, row)


def pool_of(figures: SlotFigures) -> SharedPool:
    """All stages in one pool, each with one slot at a time.

    Raises `ModelError` where one of them has more than a slot's work.
    """
    weights = visits_of(figures)
    return SharedPool(
        tuple(
            PoolMember(
                name,
                stage.moments.rows_per_second,
                stage.fixed_seconds,
                stage.row_seconds,
                _turns(weights, name, stage) or 1.0,
            )
            for name, stage in figures.stages.items()
        )
    )


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
    model that was closest for it. With `only` one model is used, whatever its errors. Where
    `most_slots` are fewer than the stages, all of them share a pool.
    """

    only: str | None = None
    most_slots: int = MOST_SLOTS
    _whole: ModelChoice = field(default_factory=lambda: ModelChoice((TURNS, ALONE), CLEARLY, LEAST))
    _choices: dict[str, ModelChoice] = field(default_factory=dict)
    _pool: ModelChoice = field(default_factory=lambda: ModelChoice((POOL,)))

    def learn(self, figures: SlotFigures) -> None:
        """Compares what the models say of each stage, as it is, with what was measured of it."""
        seen = {
            name: each for name, each in figures.stages.items() if each.known and each.sojourn_seconds > 0.0
        }
        if self.shares(figures.stages):
            self._learn_of_pool(figures, seen)
            return
        alone = {}
        for name, stage in seen.items():
            said = {each: model.sojourn_seconds(stage.slots) for each, model in models_of(stage).items()}
            choice = self._choice(name)
            # By the model that was in use: the one that fits best afterwards fits by hindsight.
            alone[name] = said.get(choice.best.model, inf)
            choice.learn(said, stage.sojourn_seconds)
        joint = self._together(figures)
        slots = {name: stage.slots for name, stage in figures.stages.items()}
        if joint is None or not seen or not joint.keeps_up(slots):
            return
        by_turns = joint.stage_seconds(slots)
        stayed = {name: each.sojourn_seconds for name, each in seen.items()}
        weights = {each.name: each.weight for each in joint.stages if each.name in seen}
        whole = {kind: _weighted(weights, each) for kind, each in ((TURNS, by_turns), (ALONE, alone))}
        self._whole.learn(whole, _weighted(weights, stayed))

    def _learn_of_pool(self, figures: SlotFigures, seen: Mapping[str, StageSlotFigures]) -> None:
        network = self._shared(figures) if len(seen) == len(figures.stages) else ""
        if isinstance(network, str):
            return
        weights = {each.name: each.weight for each in pool_of(figures).members}
        stayed = _weighted(weights, {name: each.sojourn_seconds for name, each in seen.items()})
        self._pool.learn({POOL: network.sojourn_seconds({POOL: self.most_slots})}, stayed)

    def shares(self, names: Collection[str]) -> bool:
        """Whether there are fewer slots than stages, so that none has a slot of its own."""
        return self.most_slots < len(names)

    def choices(self, names: Mapping[str, Any]) -> dict[str, Choice]:
        """The model of each stage with the errors that speak for it."""
        if self.shares(names):
            return dict.fromkeys(names, self._pool.best)
        whole = self._whole.best
        if self._by_turns and whole.errors:
            return dict.fromkeys(names, Choice(TURNS, whole.errors, whole.reason))
        return {name: self._choice(name).best for name in names}

    def network(self, figures: SlotFigures) -> Network | str:
        """E[T] by the slots of each stage, or of the pool that they share, or why nothing can be said yet."""
        if not figures.stages:
            return "no stage whose slots could change"
        idle, unknown = idles(figures), [name for name, each in figures.stages.items() if not each.known]
        if not figures.outside_rows_per_second > 0.0 and (unknown or not idle):
            return "nothing came from outside"
        if unknown:
            return f"nothing is known of {unknown[0]} yet"
        if self.shares(figures.stages):
            return self._shared(figures)
        if idle:
            return idle_network(figures)
        joint = self._together(figures) if self._by_turns else None
        if joint is not None:
            return joint
        return Network(tuple(self._stage(name, each, figures) for name, each in figures.stages.items()))

    def _shared(self, figures: SlotFigures) -> Network | str:
        try:
            return Network((NetworkStage(POOL, pool_of(figures)),))
        except ModelError as error:
            return str(error)

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
            weight = _turns(visits_of(figures), name, stage) or weight
        return NetworkStage(name, made[chosen], weight)

    def _choice(self, name: str) -> ModelChoice:
        if name not in self._choices:
            single = self.only in SINGLE
            self._choices[name] = ModelChoice((str(self.only),) if single else SINGLE)
        return self._choices[name]


def _turns(visited: Mapping[str, float], name: str, stage: StageSlotFigures) -> float:
    """Of the stage for an input, by how rows flow, or else as counted; 0.0 where neither is known."""
    return visited.get(name) or stage.turns_per_input


def _weighted(weights: Mapping[str, float], seconds: Mapping[str, float]) -> float:
    return sum(weight * seconds[name] for name, weight in weights.items())
