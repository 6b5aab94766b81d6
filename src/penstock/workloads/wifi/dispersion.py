"""How bursty arrivals are: the index of dispersion of counts."""

from __future__ import annotations

import numpy as np


def index_of_dispersion(seconds: np.ndarray, scale: float, span: float) -> float:
    """Variance over mean of the rows in stretches of `scale` seconds, from 0 to `span`; 1 is Poisson's.

    >>> index_of_dispersion(np.array([0.5, 1.5, 2.5, 3.5]), 1.0, 4.0)
    0.0
    >>> index_of_dispersion(np.array([0.1, 0.2, 0.3, 0.4]), 1.0, 4.0)
    3.0
    """
    stretches = int(span // scale)
    inside = seconds[(seconds >= 0) & (seconds < stretches * scale)]
    counts = np.bincount((inside // scale).astype(np.int64), minlength=stretches)
    return float(counts.var() / counts.mean())
