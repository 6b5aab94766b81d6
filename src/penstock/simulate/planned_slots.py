"""Slots for the stages of a plant as `penstock plan` would give them, for each size of the pool."""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.forecast import forecast
from penstock.plan.workflow import PlanStage, Workflow
from penstock.simulate.plant import Plant


def with_planned_slots(plant: Plant, slots: int) -> Plant:
    """The same stages with the slots that are best for a pool of so many; one each where they must share.

    Refuses pools that cannot keep up, as a plan does.
    """
    found = {stage.name: stage.slots for stage in forecast(workflow_of_plant(plant), slots).stages}
    return replace(plant, stages=tuple(replace(stage, slots=found[stage.name]) for stage in plant.stages))


def workflow_of_plant(plant: Plant) -> Workflow:
    """What a plan is made for."""
    above: dict[str, dict[str, float]] = {stage.name: {} for stage in plant.stages}
    loops: dict[str, dict[str, float]] = {stage.name: {} for stage in plant.stages}
    seen: set[str] = set()
    for stage in plant.stages:
        for below in plant.below(stage):
            edges = loops if below.name in seen or below is stage else above
            edges[below.name][stage.name] = stage.selectivity
        seen.add(stage.name)
    return Workflow(
        tuple(
            PlanStage(
                stage.name,
                stage.cost.fixed_seconds,
                stage.cost.row_seconds,
                above[stage.name],
                loops[stage.name],
                plant.outside_rates[stage.name],
            )
            for stage in plant.stages
        ),
        (),
    )
