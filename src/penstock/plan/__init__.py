"""Plans: how many rows a turn of each stage takes. Imports no Spark."""

from penstock.plan.batches import BatchPlan, plan_batches
from penstock.plan.overload import Shortage, shortage_of
from penstock.plan.workflow import PlanError, PlanStage, Pool, Product, Workflow

__all__ = [
    "BatchPlan",
    "PlanError",
    "PlanStage",
    "Pool",
    "Product",
    "Shortage",
    "Workflow",
    "plan_batches",
    "shortage_of",
]
