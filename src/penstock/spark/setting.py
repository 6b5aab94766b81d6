"""A setting of Spark's, with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LOGGING = Path(__file__).with_name("log4j2.properties")


@dataclass(frozen=True)
class Setting:
    """One Spark setting: its value, why it is so, and what a session without it pays."""

    value: str
    why: str
    cost_without: str = ""
