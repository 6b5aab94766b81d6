"""The memory that processes have."""

from __future__ import annotations

import time
from contextlib import suppress

import psutil

COPY_SECONDS = 2.0
"""A process that has its parent's command line for longer is no copy on its way to another program."""


def memory_mb(*processes: psutil.Process) -> float:
    """Of these, in MB; one that has just ended has none.

    >>> memory_mb(psutil.Process()) > 1.0
    True
    """
    rss = 0
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            rss += 0 if _is_copy(each) else each.memory_info().rss
    return rss / 1e6


def _is_copy(process: psutil.Process) -> bool:
    """Whether it is about to become another program: until then it shares the memory of who started it."""
    if time.time() - process.create_time() > COPY_SECONDS:
        return False
    parent = process.parent()
    return parent is not None and process.cmdline() == parent.cmdline()
