"""An order that holds for one decision only."""

from __future__ import annotations

from penstock.scheduling.policies import Random
from penstock.scheduling.scheduler import Scheduler


def redraw(scheduler: Scheduler) -> None:
    """Before a decision: under a policy by lot all that wait draw anew.

    A draw that was kept until a stage's figures change would let one whose rows come often draw often, and
    one that drew badly wait for as long as the others go on.
    """
    if isinstance(scheduler.policy, Random):
        scheduler.reschedule(scheduler.policy)
