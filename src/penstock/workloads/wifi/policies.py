"""What each subject allows: policies of their own for 10,000 of them, and who is marked as exposed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from penstock.operators.privacy.policies import Policy
from penstock.workloads.wifi.associations import CAMPUS
from penstock.workloads.wifi.campus import Campus
from penstock.workloads.wifi.sharing import PRODUCTS, Product

HOURS: Sequence[tuple[str, str]] = (
    ("08:00", "18:00"),
    ("07:30", "09:30"),
    ("12:00", "16:00"),
    ("20:00", "06:00"),
)
WITH_HOURS = 0.3
WITH_OTHER_PURPOSE = 0.05
EXPOSED_SHARE = 0.01


def policies_of(campus: Campus = CAMPUS, seed: int = 1) -> list[Policy]:
    """Policies for privacy.PolicyTable: which products each subject allows, to whom and at which hours.

    Three in ten hold at some hours only. One in twenty names the right consumer and another purpose,
    which allows nothing here. Who has no policy at all allows nothing.
    """
    chance = random.Random(f"policies {seed}")
    return [
        _policy(subject, product, chance)
        for subject in campus.subject_names
        for product in PRODUCTS.values()
        if chance.random() < product.share
    ]


def _policy(subject: str, product: Product, chance: random.Random) -> Policy:
    other = chance.random() < WITH_OTHER_PURPOSE
    hours = chance.choice(HOURS) if chance.random() < WITH_HOURS else (None, None)
    return Policy(subject, product.consumer, ["advertising" if other else product.purpose], *hours)


def exposed_subjects(campus: Campus = CAMPUS, seed: int = 1, share: float = EXPOSED_SHARE) -> frozenset[str]:
    """The subjects that are marked as exposed: one in a hundred, and at least one."""
    count = max(round(campus.subjects * share), 1)
    return frozenset(random.Random(f"exposed {seed}").sample(campus.subject_names, count))
