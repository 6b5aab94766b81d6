"""What one decision of the scheduler costs while many stages wait."""

from __future__ import annotations

import random
import time

from penstock.scheduling.catalog import POLICIES, policy_named
from penstock.scheduling.decisions import DecisionLog, Grant
from penstock.scheduling.scheduler import Scheduler
from penstock.scheduling.stage_view import StageView

STAGES = 10_000
SLOTS = 2
MOST_ROWS = 1_000_000


def decision_seconds(policy: str, decisions: int, stages: int = STAGES, seed: int = 1) -> list[float]:
    """The seconds of so many cycles: grant and log it, hear that the turn ended, let the stage wait again."""
    draw = random.Random(seed)
    scheduler, log = Scheduler(policy_named(policy), SLOTS), DecisionLog()
    for number in range(stages):
        rows = draw.randrange(1, MOST_ROWS)
        scheduler.wait(StageView(f"pipeline{number % 100}.stage{number}", "p", rows, number * 1e-3, 0.0))
    now = stages * 1e-3
    scheduler.next(now)  # One turn goes on for ever, so that a slot is taken while we decide on the other.
    times = []
    for _ in range(decisions):
        now += 0.001
        rows = draw.randrange(1, MOST_ROWS)
        begun = time.perf_counter()
        decision = scheduler.next(now)
        log.add(decision)
        assert isinstance(decision, Grant)
        scheduler.finished(decision.stage, now)
        scheduler.wait(StageView(decision.stage, "p", rows, now, now))
        times.append(time.perf_counter() - begun)
    return times


def by_policy(decisions: int) -> dict[str, list[float]]:
    return {policy: decision_seconds(policy, decisions) for policy in POLICIES}
