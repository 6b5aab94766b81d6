"""What a plan is made for: stages with their costs and rates, the data products, and the pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from penstock.errors import PenstockError
from penstock.model.traffic import EndlessLoopError, rates_through

RESERVE = 0.1
"""Of the slots, what a plan leaves free."""


class PlanError(PenstockError):
    """A workflow for which no plan can be made."""


@dataclass(frozen=True, slots=True)
class PlanStage:
    """One operator, v_j in BatchIT. A turn of b rows takes `fixed_seconds` + `row_seconds` * b.

    `above` are the stages that it reads, each with the rows that come from there for a row taken there
    (selectivity, s_ij); `loops` are those further down that feed it too. `rows_per_second` come from outside.
    """

    name: str
    fixed_seconds: float
    row_seconds: float
    above: Mapping[str, float] = field(default_factory=dict)
    loops: Mapping[str, float] = field(default_factory=dict)
    rows_per_second: float = 0.0
    slots: int = 1
    most_rows: int = 1_000_000
    """Of a batch: what larger ones would cost is not known."""
    block_rows: int = 0
    """beta_j of a blocking operator: without so many rows it makes nothing."""
    state_seconds: float = 0.0
    """sigma_j: what it takes to load its state."""
    seen_row_seconds: float = 0.0
    """Of a turn for each of its rows, at the sizes that turns had; 0 where that was not measured."""
    model: str = "bulk"
    """By which a forecast tells how long rows stay: one of `penstock.plan.forecast_models`."""
    starts: bool = False
    """t_in: the next turn is the first after a start, or after state was loaded anew."""

    @property
    def loading_seconds(self) -> float:
        """sigma_j t_in: what the next turn takes on top of its batch."""
        return self.state_seconds if self.starts else 0.0


@dataclass(frozen=True, slots=True)
class Product:
    """A data product, made by one stage: it must be there within `target_seconds`."""

    name: str
    stage: str
    target_seconds: float


@dataclass(frozen=True, slots=True)
class Pool:
    """W slots, of which `reserve` (epsilon) stays free; all batches together have `most_rows` (C) at most."""

    slots: int
    reserve: float = RESERVE
    most_rows: float = inf

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise PlanError(f"a pool must have at least 1 slot, got {self.slots}: no turn could ever run")
        if not 0.0 <= self.reserve < 1.0:
            raise PlanError(
                f"the reserve of a pool must be 0 or more and less than 1, got {self.reserve}: "
                "nothing would be left to work with"
            )

    @property
    def usable(self) -> float:
        """Slots that may be busy on average: W (1 - epsilon)."""
        return self.slots * (1.0 - self.reserve)


@dataclass(frozen=True)
class Workflow:
    """Stages, each after those that it reads, and the products they make."""

    stages: tuple[PlanStage, ...]
    products: tuple[Product, ...]

    def __post_init__(self) -> None:
        known: set[str] = set()
        for stage in self.stages:
            if missing := [name for name in stage.above if name not in known]:
                raise PlanError(
                    f"stage {stage.name!r} must come after the stages that it reads, got {missing[0]!r} "
                    "later or never: no rate could be told"
                )
            known.add(stage.name)
        for product in self.products:
            if product.stage not in known:
                raise PlanError(f"product {product.name!r} must be made by a stage, got {product.stage!r}")
            if not product.target_seconds > 0.0:
                raise PlanError(
                    f"product {product.name!r} must have a positive target, got "
                    f"{product.target_seconds} s: no plan could meet it"
                )

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {stage.name: place for place, stage in enumerate(self.stages)}

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """lambda_j of each stage, rows per second: equation 1, through loops too."""
        shares: dict[str, dict[str, float]] = {stage.name: {} for stage in self.stages}
        for stage in self.stages:
            for edges in (stage.above, stage.loops):
                for above, share in edges.items():
                    shares[above][stage.name] = shares[above].get(stage.name, 0.0) + share
        try:
            rates = rates_through({stage.name: stage.rows_per_second for stage in self.stages}, shares)
        except EndlessLoopError as error:
            raise PlanError(
                "rows that go round a loop must become fewer, got as many or more at each round: "
                "no plan can hold what never ends"
            ) from error
        return tuple(rates.values())

    @cached_property
    def urgency(self) -> tuple[float, ...]:
        """For each stage the tightest target at it or below it; infinite where there is none."""
        tightest = [inf] * len(self.stages)
        for product in self.products:
            place = self.places[product.stage]
            tightest[place] = min(tightest[place], product.target_seconds)
        for place in range(len(self.stages) - 1, -1, -1):
            for name in self.stages[place].above:
                above = self.places[name]
                tightest[above] = min(tightest[above], tightest[place])
        return tuple(tightest)

    @property
    def settled(self) -> Workflow:
        """The same once all state is loaded; itself where that is so."""
        if not any(stage.loading_seconds for stage in self.stages):
            return self
        return replace(self, stages=tuple(replace(stage, starts=False) for stage in self.stages))

    def scaled(self, factor: float) -> Workflow:
        """The same with `factor` times the rows."""
        stages = tuple(replace(each, rows_per_second=factor * each.rows_per_second) for each in self.stages)
        return replace(self, stages=stages)
