"""How evenly a pipeline's load is served, and what rate it could hold: EdgeWise, section 5."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from penstock.measure.stage_meter import StageFigures


@dataclass(frozen=True, slots=True)
class StageCongestion:
    """One stage in the terms of EdgeWise (USENIX ATC 2019, section 5.1), relative to the first one."""

    stage: str
    weight: float
    """w_i: slots it occupied on average; over all stages of an engine at most the slots there are."""
    relative_input: float
    """q_i = lambda_i / lambda_0."""
    relative_service: float
    """r_i = mu_i / mu_0, with rates per slot."""
    utilisation: float
    """rho_w of equation 11."""

    @property
    def balance(self) -> float:
        """w_i * r_i / q_i, which equation 4 wants equal over stages."""
        return self.weight * self.relative_service / self.relative_input

    @property
    def wanted(self) -> float:
        """q_i / r_i: what the weights should be proportional to."""
        return self.relative_input / self.relative_service


@dataclass(frozen=True, slots=True)
class Congestion:
    """The stages of one pipeline over one window; what is not known is None.

    `stages` are those that rows came to and that took some; `left_out` names the others, which have no
    rates. Their utilisation is known all the same: a stage that starves or is stuck is the least balanced.
    """

    slots: int
    stages: tuple[StageCongestion, ...]
    left_out: tuple[str, ...]
    input_rows_per_second: float | None = None
    """lambda_0: rows that came to the first operations."""
    first_rows_per_slot_second: float | None = None
    """mu_0: rows that the first operations take per second and slot."""
    utilisations: tuple[float, ...] = ()
    """rho_w of all stages, those that are left out as well."""

    @property
    def highest_rows_per_second(self) -> float | None:
        """The input that equation 4 allows at best, mu_0 * C / sum(q_i / r_i), were the slots all its own.

        With service rates as they are: turns that grow with the input make them better.
        """
        if not self.stages or self.first_rows_per_slot_second is None:
            return None
        return self.first_rows_per_slot_second * self.slots / sum(each.wanted for each in self.stages)

    @property
    def weight_cv(self) -> float | None:
        """Coefficient of variation of the balance over stages: 0 is the best there can be."""
        return variation([each.balance for each in self.stages])

    @property
    def utilisation_cv(self) -> float | None:
        """Coefficient of variation of the utilisation over all stages."""
        return variation(self.utilisations)


def congestion_of(figures: Mapping[str, StageFigures], slots: int, first: Collection[str]) -> Congestion:
    """The congestion of one pipeline, from its stages' figures over one window.

    `first` names its first operations. Where there are several (several sources), lambda_0 is the
    sum of their inputs and mu_0 the rate at which a slot serves their rows in that mix; the highest
    rate is then that of all sources together, at the present proportions.
    """
    seen = {name: each for name, each in figures.items() if _has_rows(each)}
    left_out = tuple(name for name in figures if name not in seen)
    begin = [seen[name] for name in seen if name in first]
    utilisations = tuple(each.utilisation for each in figures.values() if each.seconds > 0.0)
    if not begin:
        return Congestion(slots, (), tuple(figures), utilisations=utilisations)
    lambda_0 = sum(each.arrival_rows_per_second for each in begin)
    # Slot-seconds that a second's input costs, so that the mean of the rates is that of a row.
    mu_0 = lambda_0 / sum(each.arrival_rows_per_second / each.service_rows_per_slot_second for each in begin)
    stages = tuple(
        StageCongestion(
            stage=name,
            weight=each.slot_seconds / each.seconds,
            relative_input=each.arrival_rows_per_second / lambda_0,
            relative_service=each.service_rows_per_slot_second / mu_0,
            utilisation=each.utilisation,
        )
        for name, each in seen.items()
    )
    return Congestion(slots, stages, left_out, lambda_0, mu_0, utilisations)


def _has_rows(figures: StageFigures) -> bool:
    rates = (figures.arrival_rows_per_second, figures.service_rows_per_slot_second, figures.seconds)
    return min(rates) > 0.0


def variation(values: Sequence[float]) -> float | None:
    """Standard deviation over mean; None without values, or where their mean is 0.

    >>> variation([1.0, 3.0])
    0.5
    """
    mean = sum(values) / len(values) if values else 0.0
    if mean <= 0.0:
        return None
    return sqrt(sum((value - mean) ** 2 for value in values) / len(values)) / mean
