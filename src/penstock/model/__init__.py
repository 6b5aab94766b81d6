"""Models: how long an input takes, given the slots of each stage. Imports no Spark."""

from penstock.model.bulk import BulkService
from penstock.model.dealt import DealtTurns
from penstock.model.dealt_cost import DealtCost
from penstock.model.gigk import GIGk
from penstock.model.mmk import MMk
from penstock.model.network import Network, NetworkStage
from penstock.model.shared_pool import PooledStage, PoolMember, SharedPool
from penstock.model.stage_model import ModelError, StageModel, least_slots
from penstock.model.traffic import rates_through
from penstock.model.turn_network import Inflow, TurnNetwork

__all__ = [
    "BulkService",
    "DealtCost",
    "DealtTurns",
    "GIGk",
    "Inflow",
    "MMk",
    "ModelError",
    "Network",
    "NetworkStage",
    "PoolMember",
    "PooledStage",
    "SharedPool",
    "StageModel",
    "TurnNetwork",
    "least_slots",
    "rates_through",
]
