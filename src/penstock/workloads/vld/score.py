"""How well logos were found: against what was drawn, frame by frame."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """Pairs of a frame and a logo: found rightly, found where it is not, and there but not found.

    >>> Score.of({1: {"a", "b"}, 2: {"a"}}, {1: {"a"}, 2: {"a", "c"}})
    Score(right=2, wrong=1, missed=1)
    """

    right: int
    wrong: int
    missed: int

    @classmethod
    def of(cls, drawn: Mapping[int, Collection[str]], found: Mapping[int, Collection[str]]) -> Score:
        """By frame; a frame that nothing was told of has all its logos missed."""
        pairs = {(frame, logo) for frame, logos in drawn.items() for logo in logos}
        told = {(frame, logo) for frame, logos in found.items() for logo in logos}
        return cls(len(pairs & told), len(told - pairs), len(pairs - told))

    @property
    def precision(self) -> float:
        """Of what was found, the share that is there; 1 where nothing was."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Of what is there, the share that was found; 1 where nothing is."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0
