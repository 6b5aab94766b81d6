"""Policies: one file each, all behind `Policy`."""

from penstock.scheduling.policies.fifo import Fifo
from penstock.scheduling.policies.longest_queue import LongestQueue
from penstock.scheduling.policies.min_latency import MinLatency
from penstock.scheduling.policies.min_memory import MinMemory
from penstock.scheduling.policies.policy import Policy
from penstock.scheduling.policies.random import Random

__all__ = ["Fifo", "LongestQueue", "MinLatency", "MinMemory", "Policy", "Random"]
