"""The data products: who gets each, for what purpose, and how soon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """One data product; `latency_seconds` is its target, `share` the part of subjects that allow it."""

    name: str
    consumer: str
    purpose: str
    latency_seconds: float
    share: float


PRODUCTS: Mapping[str, Product] = {
    each.name: each
    for each in (
        Product("exposure", "health office", "contact tracing", 0.5, 0.95),
        Product("concierge", "concierge", "finding people", 1.0, 0.5),
        Product("flow", "city planning", "movement statistics", 5.0, 0.8),
        Product("occupancy", "facilities", "energy", 10.0, 0.9),
        Product("archive", "research", "studies", 30.0, 0.6),
    )
}
