"""Operators that make data of people and devices fit to share. docs/privacy.md says what each promises."""

from penstock.operators.privacy.access import access_control
from penstock.operators.privacy.budget import Budget
from penstock.operators.privacy.encrypt import decrypt, encrypt
from penstock.operators.privacy.generalise import generalise_place, generalise_time
from penstock.operators.privacy.k_anonymous import k_anonymous
from penstock.operators.privacy.keys import Keys
from penstock.operators.privacy.noise import private_counts, private_means, private_sums
from penstock.operators.privacy.policies import Policy, PolicyTable
from penstock.operators.privacy.pseudonymise import pseudonymise

__all__ = [
    "Budget",
    "Keys",
    "Policy",
    "PolicyTable",
    "access_control",
    "decrypt",
    "encrypt",
    "generalise_place",
    "generalise_time",
    "k_anonymous",
    "private_counts",
    "private_means",
    "private_sums",
    "pseudonymise",
]
