"""Where the controller of slots meets the engine: figures in, decisions out, acted on and written down."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from penstock.errors import PenstockError
from penstock.measure.slot_figures import SlotFigures
from penstock.model.network import Network
from penstock.plan.controller import SlotController
from penstock.plan.controller_state import Hold, Rescale, SlotObservation, SlotSettings, SlotState
from penstock.plan.model_choice import Choice
from penstock.plan.slot_changes import SlotDecision, finite
from penstock.plan.slot_models import POOL, StageModels, behind, measured
from penstock.spark.dispatcher import Dispatcher
from penstock.spark.rescaling import Rescaler
from penstock.spark.running import RunningPipeline

log = logging.getLogger("penstock")

Settings = SlotSettings | Mapping[str, SlotSettings]
"""For every pipeline alike, or by name; a pipeline without settings keeps its slots."""


@dataclass
class _Controlled:
    """A pipeline under control: what is remembered of it."""

    controller: SlotController
    models: StageModels
    state: SlotState | None = None
    acting: bool = False


class SlotControl:
    """Looks at each pipeline when an interval of measuring has ended, decides, and acts."""

    def __init__(self, settings: Settings | None, rescaler: Rescaler, dispatcher: Dispatcher):
        self._settings = settings
        self._rescaler = rescaler
        self._dispatcher = dispatcher
        self._controlled: dict[str, _Controlled] = {}
        self._lock = threading.Lock()

    def look(self, now: float, pipelines: Sequence[RunningPipeline]) -> None:
        """Measures every pipeline; decides on those whose interval has ended."""
        for running in pipelines:
            stages = tuple(running.stages)
            figures = running.meters.look(now, stages) if stages else None
            controlled = self._of(running.name)
            if figures is None or controlled is None or controlled.acting or running.state != "running":
                continue
            fixed = {stage.name for stage in stages if not stage.slots_may_change}
            own = {name: each for name, each in figures.stages.items() if name not in fixed}
            self._decide(running, controlled, replace(figures, stages=own))

    def choices(self, pipeline: str) -> dict[str, Choice]:
        """The model of each stage of a pipeline under control, and why."""
        controlled = self._of(pipeline)
        if controlled is None or controlled.state is None:
            return {}
        return controlled.models.choices(controlled.state.slots)

    def _of(self, name: str) -> _Controlled | None:
        with self._lock:
            if name not in self._controlled:
                given = self._settings
                settings = given if isinstance(given, SlotSettings) else (given or {}).get(name)
                if settings is None:
                    return None
                models = StageModels(most_slots=settings.most_slots)
                self._controlled[name] = _Controlled(SlotController(settings), models)
            return self._controlled[name]

    def _decide(self, running: RunningPipeline, controlled: _Controlled, figures: SlotFigures) -> None:
        controlled.models.learn(figures)
        slots = {name: stage.slots for name, stage in figures.stages.items()}
        network = controlled.models.network(figures)
        if isinstance(network, str):
            self._rescaler.keep(SlotDecision(figures.at, running.name, False, network, slots, slots))
            return
        if controlled.models.shares(slots):
            self._keep_shared(running, controlled, figures, network)
            return
        seconds, done = measured(figures)
        waits = behind(figures)
        seen = SlotObservation(
            figures.at, network, slots, seconds, done, figures.surge, figures.latest_surge, waits
        )
        state = controlled.state or SlotState(slots, figures.at)
        step = controlled.controller.step(state, seen)
        controlled.state = step.state
        decision = step.decision
        wanted = slots if isinstance(decision, Hold) else dict(decision.plan.slots)
        self._rescaler.keep(
            SlotDecision(
                figures.at,
                running.name,
                isinstance(decision, Rescale),
                decision.reason,
                slots,
                wanted,
                seconds if done else None,
                finite(network.sojourn_seconds(slots)),
                *_told(controlled.models.choices(slots)),
            )
        )
        if isinstance(decision, Rescale):
            controlled.acting = True
            # Not here: others are to be looked after while a stage with state comes to rest.
            self._dispatcher.submit(lambda: self._act(running, controlled, decision))

    def _keep_shared(
        self, running: RunningPipeline, controlled: _Controlled, figures: SlotFigures, pool: Network
    ) -> None:
        """Fewer slots than stages: they are the pool's, and there is nothing to place."""
        slots = {name: stage.slots for name, stage in figures.stages.items()}
        most = controlled.controller.settings.most_slots
        controlled.state = SlotState(slots, figures.at)
        seconds, done = measured(figures)
        shared = f"{most} slot{'s' if most > 1 else ''}"
        said = f"{len(slots)} stages share {shared}, turn by turn: none has any of its own"
        times = seconds if done else None, finite(pool.sojourn_seconds({POOL: most}))
        told = _told(controlled.models.choices(slots))
        self._rescaler.keep(SlotDecision(figures.at, running.name, False, said, slots, slots, *times, *told))

    def _act(self, running: RunningPipeline, controlled: _Controlled, decision: Rescale) -> None:
        try:
            self._rescaler.apply((running,), decision.plan.slots, decision.reason)
        except PenstockError as error:
            log.warning("slots of pipeline %r could not be changed: %s", running.name, error)
            slots = {stage.name: stage.slots for stage in tuple(running.stages)}
            wanted, now = dict(decision.plan.slots), self._dispatcher.clock()
            said = f"could not be acted on: {error}"
            self._rescaler.keep(SlotDecision(now, running.name, False, said, slots, wanted))
        finally:
            controlled.acting = False


def _told(choices: Mapping[str, Choice]) -> tuple[dict[str, str], dict[str, float]]:
    """The models of stages, and by what they were off."""
    models = {name: each.model for name, each in choices.items()}
    return models, {name: each.error for name, each in choices.items() if each.error < inf}


def check_control(settings: Settings | None, pool_slots: int) -> None:
    """Refuses settings that ask for more slots than there are."""
    given = (settings,) if isinstance(settings, SlotSettings) else tuple((settings or {}).values())
    for each in given:
        if each.most_slots > pool_slots:
            raise PenstockError(
                f"most_slots of a controller of slots must be at most the {pool_slots} of the pool, "
                f"got {each.most_slots}: turns would wait for slots that are not there"
            )
