"""Where runs take place: one process with a JVM of 22 slots, kept warm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.bench.scaling.cases import Case, Slots, shown
from penstock.bench.workers import Worker

POOL_SLOTS = 22
LOOKS = 6
"""At what a run has measured, where slots do not change."""
HEAT = Case("fpd", 10.0, 8)


@dataclass(frozen=True)
class Times:
    """Seconds. A `minute` is what one minute of the paper is compressed to; service times are not."""

    warmup: float
    measured: float
    heat: float
    minute: float
    repeats: int = 1
    again: int = 0
    """Further runs of allocations that are close to the best of a case; the median of all counts."""


@dataclass(frozen=True)
class Run:
    """A case with its slots, and what came of it."""

    case: Case
    slots: Slots
    told: Mapping[str, Any] = field(repr=False)

    @property
    def seconds(self) -> float:
        """E[T^], from when an input was due until the last row of it was at the sink."""
        return float(self.told["sojourn_seconds"])


class Stand:
    """Asks the worker, which is started and warmed up when it is first needed."""

    def __init__(self, folder: Path, times: Times, say: Callable[[str], None]):
        self.times, self._folder, self._say = times, folder, say
        self._worker: Worker | None = None

    def run(self, case: Case, slots: Slots, seed: int = 1) -> Run:
        """One allocation at the case's rate."""
        times = self.times
        seconds = times.warmup + times.measured
        # Nothing changes in a run, so that all of it tells of rates and costs.
        told = {"seed": seed, "interval": seconds / LOOKS, "window": LOOKS}
        run = self._run(case, slots, [(case.inputs_per_second, seconds)], **told)
        self._say(f"  {case.name} {shown(slots)}: {run.seconds:.2f} s")
        return run

    def predict(self, allocations: Sequence[Slots]) -> Any:
        """What models say of allocations, by what the last run has measured, and of a run as long."""
        times = self.times
        spell = times.warmup + times.measured, times.warmup
        return self.ask(do="predict", allocations=[dict(each) for each in allocations], spell=spell)

    def controlled(
        self,
        case: Case,
        slots: Slots,
        minutes: Sequence[tuple[float, float]],
        control: Mapping[str, Any],
        window: int,
    ) -> Run:
        """Slots are the controller's; `minutes` has (inputs a second, minutes) one after the other."""
        rates = [(rate, each * self.times.minute) for rate, each in minutes]
        return self._run(case, slots, rates, control=dict(control), window=window)

    def _run(self, case: Case, slots: Slots, rates: Sequence[tuple[float, float]], **more: Any) -> Run:
        told = self.ask(
            do="run",
            topology=case.topology,
            slots=dict(slots),
            rates=list(rates),
            gaps=case.gaps,
            scv=case.scv,
            work=case.work,
            warmup=self.times.warmup,
            **{"interval": self.times.minute, **more},
        )
        return Run(case, slots, told)

    def ask(self, **request: Any) -> Any:
        if self._worker is None:
            self._worker = Worker("penstock.bench.scaling.worker", self._folder, "--slots", str(POOL_SLOTS))
            self._worker.ready()
            self._say("warming up")
            self._run(HEAT, HEAT.first_slots, [(HEAT.inputs_per_second, self.times.heat)])
        return self._worker.ask(**request)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
