"""Which model fits a stage: the one whose recent predictions were closest to what was measured."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from statistics import median

from penstock.errors import PenstockError

RECENT = 20
"""Predictions that count."""
BETTER = 0.8
"""A model takes over when its error is at most this share of that of the model in use."""


@dataclass(frozen=True)
class Choice:
    """The model that fits, and the errors that speak for it."""

    model: str
    errors: Mapping[str, float]
    """Median relative error of each model, best first."""
    reason: str

    @property
    def error(self) -> float:
        """Of the model that fits; inf before anything was measured."""
        return self.errors.get(self.model, inf)


@dataclass
class ModelChoice:
    """Of one stage. The first of `models` is in use until another has been clearly better.

    >>> choice = ModelChoice(("mmk", "bulk"))
    >>> choice.learn({"mmk": 0.4, "bulk": 0.9}, measured_seconds=1.0)
    >>> choice.best.model, choice.best.reason
    ('bulk', 'bulk was off by 10%, mmk by 60%, over 1 measurement')
    """

    models: tuple[str, ...]
    better: float = BETTER
    least: int = 1
    """Measurements before another takes over: of many models one is always close by chance."""
    _recent: deque[dict[str, float]] = field(default_factory=lambda: deque(maxlen=RECENT))
    _used: str = ""

    def __post_init__(self) -> None:
        if not self.models:
            raise PenstockError("a choice must have at least 1 model, got none: nothing could be predicted")
        self._used = self._used or self.models[0]

    def learn(self, predicted_seconds: Mapping[str, float], measured_seconds: float) -> None:
        """Takes in what each model had predicted for what was measured; one that said nothing is off."""
        if not 0.0 < measured_seconds < inf:
            return
        self._recent.append(
            {
                name: abs(predicted_seconds.get(name, inf) - measured_seconds) / measured_seconds
                for name in self.models
            }
        )
        errors = self._errors()
        closest = next(iter(errors))
        if len(self._recent) >= self.least and errors[closest] < self.better * errors[self._used]:
            self._used = closest

    @property
    def best(self) -> Choice:
        errors = self._errors()
        if not self._recent:
            return Choice(self._used, errors, f"{self._used} until something is measured")
        used, *others = sorted(errors, key=lambda name: name != self._used)
        told = [f"{used} was off by {_told(errors[used])}"] + [
            f"{each} by {_told(errors[each])}" for each in others
        ]
        count = len(self._recent)
        over = f"over {count} measurement{'s' if count > 1 else ''}"
        return Choice(self._used, errors, ", ".join([*told, over]))

    def _errors(self) -> dict[str, float]:
        if not self._recent:
            return {}
        errors = {name: median(each[name] for each in self._recent) for name in self.models}
        return dict(sorted(errors.items(), key=lambda item: item[1]))


def _told(error: float) -> str:
    return f"{error:.0%}" if error < inf else "everything"
