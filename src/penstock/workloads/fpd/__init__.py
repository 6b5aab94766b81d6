"""Frequent patterns in tweets (FPD; DRS, section V-A): candidates, a detector with a loop, a reporter.

`Tweets` gives texts that come and leave, `fpd` is the pipeline, `maximal_patterns` the same in plain Python.
"""

from penstock.workloads.fpd.check import maximal_patterns, told_patterns
from penstock.workloads.fpd.detection import STAGES, fpd
from penstock.workloads.fpd.tweets import ARROW, SCHEMA, Tweets, Window

__all__ = [
    "ARROW",
    "SCHEMA",
    "STAGES",
    "Tweets",
    "Window",
    "fpd",
    "maximal_patterns",
    "told_patterns",
]
