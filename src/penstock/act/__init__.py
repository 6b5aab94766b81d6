"""Acting on what was planned: the last step of the control loop. Imports no Spark."""

from penstock.act.actuator import Actuator, Stages
from penstock.act.cluster import ClusterNode, Nodes, ReplicaUse
from penstock.act.loop import ElasticLoop
from penstock.act.recent_figures import RecentFigures
from penstock.act.stage_loads import stage_seen
from penstock.act.use_meter import UseMeter

__all__ = [
    "Actuator",
    "ClusterNode",
    "ElasticLoop",
    "Nodes",
    "RecentFigures",
    "ReplicaUse",
    "Stages",
    "UseMeter",
    "stage_seen",
]
