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
from penstock.scheduling.contexts import Message, PriorityContext, ReplyContext, Target
from penstock.scheduling.decisions import Decision, DecisionLog, Grant, Hold, decision_from_json, render
from penstock.scheduling.policies import (
    ContextPolicy,
    Edf,
    Fifo,
    Llf,
    LongestQueue,
    MinLatency,
    MinMemory,
    Policy,
    Random,
    Sjf,
    TokenShare,
)
from penstock.scheduling.scheduler import Scheduler, SchedulingError
from penstock.scheduling.stage_view import StageView, StageViewError

__all__ = [
    "POLICIES",
    "All",
    "AtMost",
    "Consumption",
    "ConsumptionError",
    "ContextPolicy",
    "Decision",
    "DecisionLog",
    "Edf",
    "Fifo",
    "Grant",
    "Half",
    "Hold",
    "Llf",
    "LongestQueue",
    "Message",
    "MinLatency",
    "MinMemory",
    "Policy",
    "PolicyContractBroken",
    "PriorityContext",
    "Random",
    "ReplyContext",
    "Scheduler",
    "SchedulingError",
    "Sjf",
    "StageView",
    "StageViewError",
    "Target",
    "TokenShare",
    "UnknownPolicy",
    "check_policy",
    "decision_from_json",
    "parse_consumption",
    "policy_named",
    "render",
]
