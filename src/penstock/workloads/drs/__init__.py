"""Pipelines with declared service times, which are emulated: tasks wait instead of computing.

So allocations of many slots can be tried on few cores, and what was declared is known.
"""

from penstock.workloads.drs.inputs import ARROW, SCHEMA, Finished, Inputs
from penstock.workloads.drs.topologies import TOPOLOGIES, Declared, Topology

__all__ = ["ARROW", "SCHEMA", "TOPOLOGIES", "Declared", "Finished", "Inputs", "Topology"]
