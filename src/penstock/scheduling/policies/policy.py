"""What a policy is."""

from __future__ import annotations

from typing import Protocol

from penstock.scheduling.stage_view import StageView


class Policy(Protocol):
    """Orders the waiting stages: the least priority runs first, ties go by `ready_since`, then name.

    The scheduler asks when a stage begins to wait or its figures change, and keeps the answer until
    they change again; so a priority that falls as time passes is better said as a point in time.
    A policy is a frozen dataclass of settings and passes `check_policy`.
    """

    def priority(self, stage: StageView, now: float) -> float: ...

    def reason(self, stage: StageView) -> str:
        """Why this stage came first, in a few words that only the policy knows; asked when read."""
        ...
