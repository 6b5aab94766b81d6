"""Policies: one file each, all behind `Policy`."""

from penstock.scheduling.policies.batchit import BatchIt
from penstock.scheduling.policies.context_policy import ContextPolicy
from penstock.scheduling.policies.fifo import Fifo
from penstock.scheduling.policies.llf import Edf, Llf, Sjf
from penstock.scheduling.policies.longest_queue import LongestQueue
from penstock.scheduling.policies.min_latency import MinLatency
from penstock.scheduling.policies.min_memory import MinMemory
from penstock.scheduling.policies.policy import Policy
from penstock.scheduling.policies.random import Random
from penstock.scheduling.policies.token_share import TokenShare

__all__ = [
    "BatchIt",
    "ContextPolicy",
    "Edf",
    "Fifo",
    "Llf",
    "LongestQueue",
    "MinLatency",
    "MinMemory",
    "Policy",
    "Random",
    "Sjf",
    "TokenShare",
]
