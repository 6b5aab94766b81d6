"""Operators that make data of people and devices fit to share. docs/privacy.md says what each promises."""

from penstock.operators.privacy.encrypt import decrypt, encrypt
from penstock.operators.privacy.generalise import generalise_place, generalise_time
from penstock.operators.privacy.keys import Keys
from penstock.operators.privacy.pseudonymise import pseudonymise

__all__ = [
    "Keys",
    "decrypt",
    "encrypt",
    "generalise_place",
    "generalise_time",
    "pseudonymise",
]
