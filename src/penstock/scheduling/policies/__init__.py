"""Policies: one file each, all behind `Policy`."""

from penstock.scheduling.policies.fifo import Fifo
from penstock.scheduling.policies.longest_queue import LongestQueue
from penstock.scheduling.policies.policy import Policy

__all__ = ["Fifo", "LongestQueue", "Policy"]
