"""Which stage runs next, on how many rows and slots. Pure: time is handed in, the caller locks."""

from penstock.scheduling.catalog import POLICIES, UnknownPolicy, policy_named
from penstock.scheduling.check import PolicyContractBroken, check_policy
from penstock.scheduling.consumption import (
    All,
    AtMost,
    Consumption,
    ConsumptionError,
    Half,
    parse_consumption,
)
from penstock.scheduling.decisions import Decision, DecisionLog, Grant, Hold, decision_from_json, render
from penstock.scheduling.policies import Fifo, LongestQueue, MinLatency, MinMemory, Policy, Random
from penstock.scheduling.scheduler import Scheduler, SchedulingError
from penstock.scheduling.stage_view import StageView, StageViewError

__all__ = [
    "POLICIES",
    "All",
    "AtMost",
    "Consumption",
    "ConsumptionError",
    "Decision",
    "DecisionLog",
    "Fifo",
    "Grant",
    "Half",
    "Hold",
    "LongestQueue",
    "MinLatency",
    "MinMemory",
    "Policy",
    "PolicyContractBroken",
    "Random",
    "Scheduler",
    "SchedulingError",
    "StageView",
    "StageViewError",
    "UnknownPolicy",
    "check_policy",
    "decision_from_json",
    "parse_consumption",
    "policy_named",
    "render",
]
