"""From operators to stages: fusing, cutting at queues, building, showing. Imports no Spark."""

from penstock.stages.build import OperatorError, build
from penstock.stages.fingerprint import describe, differences, fingerprint
from penstock.stages.fuse import cut
from penstock.stages.stage import Feed, Queue, Stage, StageGraph

__all__ = [
    "Feed",
    "OperatorError",
    "Queue",
    "Stage",
    "StageGraph",
    "build",
    "cut",
    "describe",
    "differences",
    "fingerprint",
]
