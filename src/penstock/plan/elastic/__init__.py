"""Elastic operators and nodes: the four managers of E2DF as pure loops, and the log of what they decide."""

from penstock.plan.elastic.application_manager import ApplicationPolicy, ApplicationView, RefuseTaken
from penstock.plan.elastic.changes import (
    Action,
    AddNode,
    AddReplica,
    Change,
    Consolidate,
    Decision,
    HideNode,
    Hold,
    Move,
    Proposal,
    ReleaseNode,
    RemoveReplica,
    ShowNode,
    Verdict,
    Wish,
)
from penstock.plan.elastic.cheapest_nodes import CheapestNodes
from penstock.plan.elastic.elasticity import Elasticity, Step
from penstock.plan.elastic.going_on import going_on
from penstock.plan.elastic.infrastructure_manager import GrantOrAsk, InfrastructurePolicy, InfrastructureView
from penstock.plan.elastic.nodes import ElasticError, Ledger, Node, NodeKind, Replica, Room
from penstock.plan.elastic.observation import Failure, NodeSeen, Observation, StageSeen
from penstock.plan.elastic.operator_manager import OnlyMeasure, OperatorPolicy, OperatorView, Thresholds
from penstock.plan.elastic.queueing_plan import QueueingPlan
from penstock.plan.elastic.region_manager import FixedNodes, KeepReserve, RegionPolicy, RegionView
from penstock.plan.elastic.replay import Record, replay
from penstock.plan.elastic.settings import NEARLY, ManagedPipeline, ManagedStage, Periods, Region
from penstock.plan.elastic.state import ElasticState, ScaleIn, SlotRequest
from penstock.plan.elastic.token_bucket import TokenBucket

__all__ = [
    "NEARLY",
    "Action",
    "AddNode",
    "AddReplica",
    "ApplicationPolicy",
    "ApplicationView",
    "Change",
    "CheapestNodes",
    "Consolidate",
    "Decision",
    "ElasticError",
    "ElasticState",
    "Elasticity",
    "Failure",
    "FixedNodes",
    "GrantOrAsk",
    "HideNode",
    "Hold",
    "InfrastructurePolicy",
    "InfrastructureView",
    "KeepReserve",
    "Ledger",
    "ManagedPipeline",
    "ManagedStage",
    "Move",
    "Node",
    "NodeKind",
    "NodeSeen",
    "Observation",
    "OnlyMeasure",
    "OperatorPolicy",
    "OperatorView",
    "Periods",
    "Proposal",
    "QueueingPlan",
    "Record",
    "RefuseTaken",
    "Region",
    "RegionPolicy",
    "RegionView",
    "ReleaseNode",
    "RemoveReplica",
    "Replica",
    "Room",
    "ScaleIn",
    "ShowNode",
    "SlotRequest",
    "StageSeen",
    "Step",
    "Thresholds",
    "TokenBucket",
    "Verdict",
    "Wish",
    "going_on",
    "replay",
]
