"""Plans: how many rows a turn of each stage takes, and how many slots. Imports no Spark."""

from penstock.plan.batches import BatchPlan, plan_batches
from penstock.plan.controller import SlotController
from penstock.plan.controller_state import Hold, Rescale, SlotObservation, SlotSettings, SlotState
from penstock.plan.fine_tuning import FineTuning
from penstock.plan.model_choice import Choice, ModelChoice
from penstock.plan.overload import Shortage, shortage_of
from penstock.plan.slot_errors import SlotError, TargetOutOfReachError, TooFewSlotsError
from penstock.plan.slots import SlotPlan, assign_processors, min_processors
from penstock.plan.workflow import PlanError, PlanStage, Pool, Product, Workflow

__all__ = [
    "BatchPlan",
    "Choice",
    "FineTuning",
    "Hold",
    "ModelChoice",
    "PlanError",
    "PlanStage",
    "Pool",
    "Product",
    "Rescale",
    "Shortage",
    "SlotController",
    "SlotError",
    "SlotObservation",
    "SlotPlan",
    "SlotSettings",
    "SlotState",
    "TargetOutOfReachError",
    "TooFewSlotsError",
    "Workflow",
    "assign_processors",
    "min_processors",
    "plan_batches",
    "shortage_of",
]
