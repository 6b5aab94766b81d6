"""Queues between stages: durable logs of segments with exact counts and a cursor for each consumer."""

from penstock.queues.cursor import Consumer
from penstock.queues.errors import (
    CorruptSegment,
    DiskFull,
    PositionAhead,
    SliceOrder,
    SpoolClosed,
    SpoolError,
    SpoolFull,
    SpoolInUse,
)
from penstock.queues.manifest import Pending
from penstock.queues.position import EARLIEST, Position
from penstock.queues.segment import Arrivals, Segment, Slice
from penstock.queues.spool import Spool

__all__ = [
    "EARLIEST",
    "Arrivals",
    "Consumer",
    "CorruptSegment",
    "DiskFull",
    "Pending",
    "Position",
    "PositionAhead",
    "Segment",
    "Slice",
    "SliceOrder",
    "Spool",
    "SpoolClosed",
    "SpoolError",
    "SpoolFull",
    "SpoolInUse",
]
