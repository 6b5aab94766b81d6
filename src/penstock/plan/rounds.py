"""How long rows are on their way through stages, some of which they pass in several rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.plan.workflow import PlanStage, Workflow


def seconds_until(workflow: Workflow, seconds: Mapping[str, float]) -> dict[str, float]:
    """When rows have left each stage, along the slowest way from a source, with their rounds on average.

    `seconds` are those of one visit.
    """
    stays = dict(seconds)
    # Loops within loops first: they begin further down.
    for stage in reversed(workflow.stages):
        if stage.loops:
            around = _slowest(loop_of(workflow, stage), stays)
            stays[stage.name] += further_rounds(workflow, stage) * max(around[name] for name in stage.loops)
    return _slowest(workflow.stages, stays)


def further_rounds(workflow: Workflow, stage: PlanStage) -> float:
    """How often a row that comes to a stage comes back to it: rows that came round over new ones."""
    rates = dict(zip(workflow.places, workflow.rates, strict=True))
    back = sum(rates[name] * share for name, share in stage.loops.items())
    fresh = rates[stage.name] - back
    return back / fresh if fresh > 0.0 else 0.0


def loop_of(workflow: Workflow, stage: PlanStage) -> list[PlanStage]:
    """All stages on a way from `stage` back to it, in their order; none where nothing comes back."""
    below = {stage.name} if stage.loops else set()
    for each in workflow.stages:
        if below.intersection(each.above):
            below.add(each.name)
    back = set(stage.loops)
    for each in reversed(workflow.stages):
        if each.name in back:
            back.update(each.above)
    return [each for each in workflow.stages if each.name in below & back]


def _slowest(stages: Sequence[PlanStage], seconds: Mapping[str, float]) -> dict[str, float]:
    until: dict[str, float] = {}
    for stage in stages:
        known = [until[name] for name in stage.above if name in until]
        until[stage.name] = seconds[stage.name] + max(known, default=0.0)
    return until
