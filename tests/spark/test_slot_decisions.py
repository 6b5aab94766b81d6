"""What the controller of slots writes down, by figures that are made up; no stage runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from penstock.measure.inputs import InputFigures
from penstock.measure.moments import StageMoments
from penstock.measure.slot_figures import SlotFigures, StageSlotFigures
from penstock.plan import SlotSettings
from penstock.plan.slot_changes import SlotDecision
from penstock.spark.slot_control import SlotControl

NAMES = ("p.read", "p.match")


def figures(at: float) -> SlotFigures:
    moments = StageMoments(10.0, 100.0, 1.0, 1.0, intervals=1, samples=10)
    stage = StageSlotFigures(moments, 1, 0.1, 1.0, 0.1, fixed_seconds=0.01, row_seconds=0.01)
    made = {"p.read": {"": 1.0}, "p.match": {"p.read": 1.0}}
    return SlotFigures(at, 10.0, InputFigures(10.0, 100, 0.2, 0), dict.fromkeys(NAMES, stage), made)


def decisions(most_slots: int, looks: int = 2) -> tuple[list[SlotDecision], SlotControl]:
    kept: list[Any] = []
    rescaler: Any = SimpleNamespace(keep=kept.append)
    control = SlotControl(SlotSettings("least-latency", most_slots), rescaler, None)  # type: ignore[arg-type]
    running: Any = SimpleNamespace(
        name="p",
        state="running",
        stages=[SimpleNamespace(name=name, slots_may_change=True) for name in NAMES],
        meters=SimpleNamespace(look=lambda now, stages: figures(now)),
    )
    for look in range(looks):
        control.look(10.0 * look, (running,))
    return kept, control


def test_a_decision_tells_by_what_its_models_were_off() -> None:
    kept, control = decisions(most_slots=4)
    errors = {name: each.error for name, each in control.choices("p").items()}
    assert kept[-1].model_errors == errors
    assert f"by read {kept[-1].models['p.read']} (off by {errors['p.read']:.0%})" in kept[-1].line()


def test_fewer_slots_than_stages_are_told_to_be_shared_with_what_a_pool_of_them_leads_to() -> None:
    kept, control = decisions(most_slots=1)
    last = kept[-1]
    assert last.reason == "2 stages share 1 slot, turn by turn: none has any of its own"
    assert (last.changes, last.wanted) == (False, dict.fromkeys(NAMES, 1))
    assert last.estimated_seconds is not None
    assert last.models == dict.fromkeys(NAMES, "pool")
    assert last.model_errors["p.read"] == abs(last.estimated_seconds - 0.2) / 0.2
    assert control.choices("p")["p.read"].reason.startswith("pool was off by ")
