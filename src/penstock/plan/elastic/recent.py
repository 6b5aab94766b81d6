"""What was needed lately, so that nothing is given up for a dip."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.plan.elastic.global_policy import Memory


@dataclass(frozen=True)
class Recent:
    """Pairs of time and need over the last `calm_seconds`, and the last one before.

    >>> calm = Recent((), 60.0).add(0.0, 5).add(30.0, 3)
    >>> calm.most, calm.add(90.0, 4).most
    (5, 4)
    """

    pairs: tuple[float, ...]
    calm_seconds: float

    @classmethod
    def of(cls, memory: Memory, name: str, calm_seconds: float) -> Recent:
        return cls(memory.get(name, ()), calm_seconds)

    def add(self, now: float, need: int) -> Recent:
        """The last look that was a whole while ago stays: nobody looks to the microsecond."""
        both = self._both()
        while len(both) > 1 and both[1][0] <= now - self.calm_seconds + 1e-6:
            both.pop(0)
        return Recent(tuple(x for pair in (*both, (now, float(need))) for x in pair), self.calm_seconds)

    def calm(self, now: float) -> bool:
        """Whether it was looked at for so long; before that, what there is may be there for a reason."""
        return bool(self.pairs) and now - self.pairs[0] >= self.calm_seconds - 1e-6

    @property
    def most(self) -> int:
        """Of the looks within the while, not of the one before it."""
        both = self._both()
        since = both[-1][0] - self.calm_seconds - 1e-6 if both else 0.0
        return int(max((need for at, need in both if at > since), default=0.0))

    def _both(self) -> list[tuple[float, float]]:
        return list(zip(self.pairs[::2], self.pairs[1::2], strict=True))
