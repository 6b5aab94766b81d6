"""Models: how long an input takes, given the slots of each stage. Imports no Spark."""

from penstock.model.bulk import BulkService
from penstock.model.dealt import DealtTurns
from penstock.model.gigk import GIGk
from penstock.model.mmk import MMk
from penstock.model.network import Network, NetworkStage
from penstock.model.shared_pool import PooledStage, PoolMember, SharedPool
from penstock.model.stage_model import ModelError, StageModel, least_slots
from penstock.model.traffic import rates_through

__all__ = [
    "BulkService",
    "DealtTurns",
    "GIGk",
    "MMk",
    "ModelError",
    "Network",
    "NetworkStage",
    "PoolMember",
    "PooledStage",
    "SharedPool",
    "StageModel",
    "least_slots",
    "rates_through",
]
