"""Operators that make data about people fit to share: who sees it, and what can no longer be told from it."""

from penstock.operators.privacy.access import access_control
from penstock.operators.privacy.budget import Budget
from penstock.operators.privacy.k_anonymous import k_anonymous
from penstock.operators.privacy.noise import private_counts, private_means, private_sums
from penstock.operators.privacy.policies import Policy, PolicyTable

__all__ = [
    "Budget",
    "Policy",
    "PolicyTable",
    "access_control",
    "k_anonymous",
    "private_counts",
    "private_means",
    "private_sums",
]
