"""The models that a forecast can make of a profile: of each stage with slots of its own, by itself.

A profile knows no spread, so that arrivals are taken to be Poisson's and rows to be alike. M/M/k and GI/G/k
know no turns, and get the time of a row as it was in the turns that were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.model.bulk import BulkService
from penstock.model.dealt import DealtTurns
from penstock.model.gigk import GIGk
from penstock.model.mmk import MMk
from penstock.model.stage_model import StageModel
from penstock.plan.workflow import PlanStage

POOL = "pool"
"""Of stages that share slots in time, whatever their model."""


def _bulk(stage: PlanStage, rate: float) -> StageModel:
    return BulkService(rate, stage.fixed_seconds, stage.row_seconds)


def _dealt(stage: PlanStage, rate: float) -> StageModel:
    return DealtTurns(rate, stage.fixed_seconds, stage.row_seconds)


def _gigk(stage: PlanStage, rate: float) -> StageModel:
    return GIGk(rate, _served(stage), service_scv=0.0)


def _mmk(stage: PlanStage, rate: float) -> StageModel:
    return MMk(rate, _served(stage))


def _served(stage: PlanStage) -> float:
    """mu: rows a second that a slot does, in turns as they were."""
    return 1.0 / (stage.seen_row_seconds or stage.fixed_seconds + stage.row_seconds)


MODELS: Mapping[str, Callable[[PlanStage, float], StageModel]] = {
    "bulk": _bulk,
    "dealt": _dealt,
    "gigk": _gigk,
    "mmk": _mmk,
}
BY_ROWS = ("gigk", "mmk")
"""Those in which an input pays for each of its rows, rather than once for a turn."""
_NEAREST = {"turns": "dealt", "dealt-segments": "dealt", "segments": "bulk"}


def nearest(chosen: str) -> str:
    """For the model that an engine has chosen for a stage, the one that a profile is enough for.

    >>> nearest("turns"), nearest("mmk")
    ('dealt', 'mmk')
    """
    return _NEAREST.get(chosen, chosen if chosen in MODELS else "bulk")
