"""Shared pool: more stages than slots, one-slot turns in rotation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

from penstock.model.bulk import BulkService
from penstock.model.slot_wait import slot_waits
from penstock.model.stage_model import ModelError, check_number


@dataclass(frozen=True)
class PoolMember:
    """One stage of a pool. A turn of n rows takes `fixed_seconds` + `row_seconds` * n on one slot."""

    name: str
    rows_per_second: float
    fixed_seconds: float
    row_seconds: float
    weight: float = 1.0
    """Turns of the stage for an input: its weight in equation 4."""

    def __post_init__(self) -> None:
        check_number(f"the weight of stage {self.name!r}", self.weight, 0.0, "no input is negative")
        if self.work >= 1.0:
            raise ModelError(
                f"stage {self.name!r} of a shared pool must have less than 1 s of work a second, got "
                f"{self.work:.3g} s: its turns run on one slot; it needs slots of its own"
            )

    @property
    def work(self) -> float:
        """lambda_i c1_i."""
        return self.rows_per_second * self.row_seconds

    @cached_property
    def alone(self) -> BulkService:
        """The same stage with a slot that nobody else uses: no pool is quicker."""
        return BulkService(self.rows_per_second, self.fixed_seconds, self.row_seconds)


@dataclass(frozen=True)
class SharedPool:
    """Several stages on one pool; as one stage of a network it takes the weighted sum of them.

    A turn waits w for a slot, behind turns of other stages. A full pool goes in rotation: a cycle takes
    G = sum(c0) / (K - sum(lambda c1)), and a row stays (1/2 + lambda_i c1_i) G + c0_i + c1_i. In an idle one
    w vanishes and each stage is as if alone. Between them w is what it leads to itself: the longer turns
    wait, the more rows they have and the more stages are there to be waited for. Derived in docs/slots.md.

    >>> pool = SharedPool(tuple(PoolMember(f"s{i}", 1000.0, 0.1, 0.0002) for i in range(8)))
    >>> [round(pool.stage_seconds("s0", k), 3) for k in (1, 2, 3, 8)]
    [inf, 1.5, 0.5, 0.188]
    """

    members: tuple[PoolMember, ...]

    def __post_init__(self) -> None:
        names = [member.name for member in self.members]
        if not names or len(set(names)) < len(names):
            raise ModelError(
                f"a shared pool must have stages of different names, got {names}: none could be told of"
            )

    @cached_property
    def busy_slots(self) -> float:
        """sum(lambda c1)."""
        return sum(member.work for member in self.members)

    @cached_property
    def floor_seconds(self) -> float:
        return sum(each.weight * each.alone.sojourn_seconds(1) for each in self.members)

    def sojourn_seconds(self, slots: int) -> float:
        """Of an input, over all its turns at these stages."""
        if slots <= self.busy_slots:
            return inf
        seconds = self._seconds(slots)
        return sum(each.weight * seconds[each.name] for each in self.members)

    def stage_seconds(self, name: str, slots: int) -> float:
        """Of a row at one of the stages."""
        return inf if slots <= self.busy_slots else self._seconds(slots)[self.member(name).name]

    def cycle_seconds(self, slots: int) -> float:
        """G, if every stage has a turn in every cycle; inf if rows pile up."""
        if slots <= self.busy_slots:
            return inf
        return sum(member.fixed_seconds for member in self.members) / (slots - self.busy_slots)

    def member(self, name: str) -> PoolMember:
        found = [member for member in self.members if member.name == name]
        if not found:
            names = ", ".join(member.name for member in self.members)
            raise ModelError(f"a stage of the pool must be one of {names}, got {name!r}: it runs elsewhere")
        return found[0]

    def _seconds(self, slots: int) -> dict[str, float]:
        if slots not in self._known:
            stages = [member.alone for member in self.members]
            waits = slot_waits(stages, slots, cycle_seconds=self.cycle_seconds(slots))
            self._known[slots] = {
                member.name: member.alone.waiting_sojourn_seconds(wait)
                for member, wait in zip(self.members, waits, strict=True)
            }
        return self._known[slots]

    @cached_property
    def _known(self) -> dict[int, dict[str, float]]:
        return {}


@dataclass(frozen=True)
class PooledStage:
    """One stage of a shared pool as a model of its own; its slots are those of the pool."""

    pool: SharedPool
    name: str

    @property
    def busy_slots(self) -> float:
        return self.pool.busy_slots

    @property
    def floor_seconds(self) -> float:
        return self.pool.member(self.name).alone.sojourn_seconds(1)

    def sojourn_seconds(self, slots: int) -> float:
        return self.pool.stage_seconds(self.name, slots)
