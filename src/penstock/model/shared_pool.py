"""Shared pool: more stages than slots, one-slot turns in rotation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

from penstock.model.bulk import BulkService
from penstock.model.gigk import GIGk
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

    In rotation a cycle takes G = sum(c0) / (K - sum(lambda c1)), and a row stays (1/2 + lambda_i c1_i) G +
    c0_i + c1_i. That is too much for a pool with little to do, where a cycle passes stages without rows;
    there the slots are a queue of one-row turns, M/G/K, too much for a busy pool, whose rows share turns.
    So the lesser of the two waits counts, and never less than what the stage would need alone.

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
        return sum(member.weight * self._seconds(member, slots) for member in self.members)

    def stage_seconds(self, name: str, slots: int) -> float:
        """Of a row at one of the stages."""
        if slots <= self.busy_slots:
            return inf
        return self._seconds(self.member(name), slots)

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

    def _seconds(self, member: PoolMember, slots: int) -> float:
        rotation = (0.5 + member.work) * self.cycle_seconds(slots)
        busy = (
            min(rotation, self._one_row_turns.waiting_seconds(slots))
            + member.fixed_seconds
            + member.row_seconds
        )
        return max(busy, member.alone.sojourn_seconds(1))

    @cached_property
    def _one_row_turns(self) -> GIGk:
        """The slots as a queue of turns of one row each, whose lengths differ between stages only."""
        arriving = sum(member.rows_per_second for member in self.members)
        if arriving == 0.0:
            return GIGk(0.0, 1.0)
        turns = [
            (each.rows_per_second / arriving, each.fixed_seconds + each.row_seconds) for each in self.members
        ]
        mean = sum(share * seconds for share, seconds in turns)
        square = sum(share * seconds**2 for share, seconds in turns)
        if mean == 0.0:
            return GIGk(0.0, 1.0)
        return GIGk(arriving, 1.0 / mean, service_scv=max(square / mean**2 - 1.0, 0.0))


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
