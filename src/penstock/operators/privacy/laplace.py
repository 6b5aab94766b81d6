"""Whole numbers with noise, drawn by OpenDP."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from penstock.errors import PenstockError

INSTALL = "pip install 'opendp>=0.16,<0.17'"


class NoiseMissing(PenstockError):
    """OpenDP is not installed."""


def opendp() -> Any:
    """OpenDP, with the mechanisms that are proven but not yet certified."""
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise NoiseMissing(
            f"differential privacy must have OpenDP, but {error}: install it with {INSTALL}"
        ) from error
    dp.enable_features("contrib")
    return dp


def with_noise(values: Sequence[int], sensitivity: int, epsilon: float) -> list[int]:
    """The values with discrete Laplace noise, all of them together epsilon-private.

    `sensitivity` is by how much one subject may change them, summed over all of them.
    """
    return list(_mechanism(sensitivity, epsilon)(list(values)))


@lru_cache(maxsize=256)
def _mechanism(sensitivity: int, epsilon: float) -> Any:
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    scale = sensitivity / epsilon
    made = dp.m.make_laplace(*space, scale=scale)
    # What OpenDP proves is rounded up: the scale grows until the proof covers what was promised.
    while made.map(sensitivity) > epsilon:
        scale *= 1 + 1e-12
        made = dp.m.make_laplace(*space, scale=scale)
    return made
