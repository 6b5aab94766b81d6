"""Changes of slots and the decisions that led to them: as values, as JSON, and as lines to read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import Any, Literal

from penstock.errors import PenstockError

Way = Literal["next turn", "restarted"]
"""How a stage came to its new slots: at its next turn, or after its state was divided anew."""


@dataclass(frozen=True)
class SlotChange:
    """A stage that goes on with other slots."""

    at: float
    stage: str
    before: int
    after: int
    reason: str
    way: Way = "next turn"
    pause_seconds: float = 0.0
    """In which it could get no turn."""

    @property
    def changes(self) -> bool:
        """Whether slots change."""
        return True

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return {"kind": "change", **vars(self)}

    def line(self, stages: Collection[str] | None = None) -> str:
        """One line, empty if it is about none of these stages."""
        if stages is not None and self.stage not in stages:
            return ""
        how = "from the next turn on"
        if self.way == "restarted":
            how = f"its state was divided anew, {self.pause_seconds:.2f} s without a turn"
        return f"{_clock(self.at)}  slots  {self.stage} {self.before} -> {self.after}: {self.reason}; {how}"


@dataclass(frozen=True)
class SlotDecision:
    """What the controller of a pipeline decided at one look."""

    at: float
    pipeline: str
    changes: bool
    """Whether slots change."""
    reason: str
    slots: Mapping[str, int]
    """As they were."""
    wanted: Mapping[str, int]
    """As they are to be; the same where nothing changes."""
    measured_seconds: float | None = None
    """E[T^] of the inputs done since the last look; None where none was."""
    estimated_seconds: float | None = None
    """E[T] of the models; None where a queue would grow without end."""
    models: Mapping[str, str] = field(default_factory=dict)
    """The model that stands for each stage."""
    model_errors: Mapping[str, float] = field(default_factory=dict)
    """By what share each of them was off of late; without those of which that is not known."""

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        fields = {**vars(self), "slots": dict(self.slots), "wanted": dict(self.wanted)}
        errors = dict(self.model_errors)
        return {"kind": "decision", **fields, "models": dict(self.models), "model_errors": errors}

    def line(self, stages: Collection[str] | None = None) -> str:
        """One line, empty if it is about none of these stages."""
        if stages is not None and not set(self.slots) & set(stages):
            return ""
        words = [
            f"{_clock(self.at)}  {'rescale' if self.changes else 'keep'}  {self.pipeline}: {self.reason}"
        ]
        shown = {name: slots for name, slots in self.wanted.items() if stages is None or name in stages}
        words.append("slots: " + ", ".join(f"{_short(name)} {slots}" for name, slots in shown.items()))
        measured = "nothing" if self.measured_seconds is None else f"{self.measured_seconds:.3g} s"
        estimated = "endless" if self.estimated_seconds is None else f"{self.estimated_seconds:.3g} s"
        words.append(f"E[T] measured {measured}, estimated {estimated}")
        models = {name: self.models[name] for name in shown if name in self.models}
        if models:
            told = (f"{_short(name)} {model}{self._off(name)}" for name, model in models.items())
            words.append("by " + ", ".join(told))
        return "; ".join(words)

    def _off(self, stage: str) -> str:
        return f" (off by {self.model_errors[stage]:.0%})" if stage in self.model_errors else ""


SlotLine = SlotChange | SlotDecision


def slot_line_from_json(stored: Mapping[str, Any]) -> SlotLine:
    """The value that `to_json` was called on."""
    fields = dict(stored)
    kind = fields.pop("kind")
    if kind == "change":
        return SlotChange(**fields)
    if kind == "decision":
        return SlotDecision(**fields)
    raise PenstockError(f"a line of slots must be a change or a decision, got {kind!r}: it says nothing")


def finite(seconds: float) -> float | None:
    """For JSON, which has no endless number."""
    return seconds if seconds < inf else None


def _short(stage: str) -> str:
    return stage.split(".", 1)[-1]


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
