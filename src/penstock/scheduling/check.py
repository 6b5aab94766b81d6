"""The contract that every policy keeps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from math import isnan

from penstock.errors import PenstockError
from penstock.scheduling.contexts import PriorityContext
from penstock.scheduling.decisions import Decision, Grant
from penstock.scheduling.policies import Policy
from penstock.scheduling.scheduler import Scheduler
from penstock.scheduling.stage_view import StageView


class PolicyContractBroken(PenstockError):
    """What a policy did that none may do."""

    def __init__(self, policy: Policy, rule: str, got: str, follows: str) -> None:
        super().__init__(f"{type(policy).__name__} must {rule}, got {got}: {follows}")
        self.policy = policy
        self.rule = rule


def check_policy(policy: Policy, seed: int = 0, turns: int = 200) -> None:
    """Raises `PolicyContractBroken` unless the policy keeps its contract on schedules drawn from `seed`.

    It gives numbers and a reason of one line, changes neither itself nor what it is shown, answers
    the same again and in another order, and under it only stages that wait are granted turns.
    """
    views = _views(random.Random(seed), 50)
    _check_answers(policy, views)
    _check_changes_nothing(policy, views)
    _check_repeats(policy, views)
    first = _schedule(deepcopy(policy), views, seed, turns)
    if first != _schedule(deepcopy(policy), views, seed, turns):
        raise PolicyContractBroken(
            policy, "repeat its schedule under one seed", "two schedules", "runs could not be replayed"
        )


def _views(rng: random.Random, stages: int) -> tuple[StageView, ...]:
    """Stages that differ in all a policy may look at, with some ties."""
    return tuple(
        StageView(
            name=f"stage {number}",
            pipeline=f"pipeline {number % 7}",
            rows_waiting=(rows := rng.choice((0, 1, 50, rng.randrange(1, 1_000_000)))),
            ready_since=(ready := 1000.0 + rng.randrange(20)),
            oldest_arrival=ready - rng.random(),
            slots=rng.randrange(1, 4),
            latency_seconds=rng.choice((None, 0.8, 60.0)),
            flush=rows == 0 or rng.random() < 0.1,
            depth=rng.randrange(5),
            seconds_per_row=rng.choice((0.0, 1e-6, 0.04, rng.random())),
            selectivity=rng.choice((0.0, 0.1, 1.0, 5.0, rng.random())),
            steepness=rng.choice((None, -3.0, 25.0, 100 * rng.random())),
            context=rng.choice((None, _context(rng, number))),
            fixed_seconds=rng.choice((0.0, 0.05)),
            row_seconds=rng.choice((0.0, 1e-6)),
        )
        for number in range(stages)
    )


def _context(rng: random.Random, number: int) -> PriorityContext:
    time = 1000.0 + rng.randrange(20)
    return PriorityContext(f"m{number}", time, time + rng.random(), time, time, 0.8, rng.random() < 0.3)


def _check_answers(policy: Policy, views: Sequence[StageView]) -> None:
    for view in views:
        priority = policy.priority(view, 1020.0)
        if not isinstance(priority, (int, float)) or isnan(priority):
            raise PolicyContractBroken(
                policy, "give a number as priority", repr(priority), "stages could not be ordered"
            )
        reason = policy.reason(view)
        if not isinstance(reason, str) or not reason.strip() or "\n" in reason:
            raise PolicyContractBroken(
                policy, "give a reason of one line", repr(reason), "grants could not be explained"
            )


def _check_changes_nothing(policy: Policy, views: Sequence[StageView]) -> None:
    settings, before = repr(policy), deepcopy(tuple(views))
    for view in views:
        policy.priority(view, 1020.0)
        policy.reason(view)
    if repr(policy) != settings:
        raise PolicyContractBroken(
            policy, f"stay {settings}", repr(policy), "its state must come in as an argument"
        )
    if tuple(views) != before:
        raise PolicyContractBroken(
            policy, "leave the stages as they are", "a changed stage", "others see it too"
        )


def _check_repeats(policy: Policy, views: Sequence[StageView]) -> None:
    forwards = [policy.priority(view, 1020.0) for view in views]
    backwards = [policy.priority(view, 1020.0) for view in reversed(views)]
    for first, second in zip(forwards, reversed(backwards), strict=True):
        if first != second:
            raise PolicyContractBroken(
                policy,
                "give one stage one priority at one time",
                f"{first} and {second}",
                "runs could not be replayed",
            )


def _schedule(
    policy: Policy, views: Sequence[StageView], seed: int, turns: int
) -> list[tuple[str, int, str]]:
    """Runs turns of random length on 3 slots; stages come back with other figures."""
    rng = random.Random(seed)
    scheduler = Scheduler(policy, slots=3)
    waiting = {view.name: view for view in views}
    granted = []
    for view in views:
        scheduler.wait(view)
    for step in range(turns):
        now = 1020.0 + step
        while isinstance(decision := scheduler.next(now), Grant):
            _check_waited(policy, decision, waiting)
            granted.append((decision.stage, decision.rows, decision.reason))
        name = rng.choice(sorted(scheduler.running))
        scheduler.finished(name, now)
        waiting[name] = replace(
            next(view for view in views if view.name == name),
            rows_waiting=rng.randrange(1, 1000),
            ready_since=now,
        )
        scheduler.wait(waiting[name])
    return granted


def _check_waited(policy: Policy, decision: Decision, waiting: dict[str, StageView]) -> None:
    if waiting.pop(decision.stage, None) is None:
        raise PolicyContractBroken(
            policy, "choose only from what waits", repr(decision.stage), "a turn would have nothing to do"
        )
