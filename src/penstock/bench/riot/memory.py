"""The memory that processes have."""

from __future__ import annotations

from contextlib import suppress

import psutil


def memory_mb(*processes: psutil.Process) -> float:
    """Of these, in MB; one that has just ended has none.

    >>> memory_mb(psutil.Process()) > 1.0
    True
    """
    rss = 0
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            rss += each.memory_info().rss
    return rss / 1e6
