"""What is looked for: the SIFT descriptors of all logos, which can be divided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.errors import PenstockError
from penstock.operators.vision.opencv import sift_descriptors


@dataclass(frozen=True, eq=False)
class LogoIndex:
    """Descriptors of logos, and whose each is: `owners` has the place of its logo in `names`."""

    names: tuple[str, ...]
    descriptors: np.ndarray
    owners: np.ndarray

    @classmethod
    def of(cls, pictures: Mapping[str, np.ndarray]) -> LogoIndex:
        """The index of grey pictures by name."""
        found = {name: sift_descriptors(picture) for name, picture in pictures.items()}
        if plain := [name for name, each in found.items() if not len(each)]:
            raise PenstockError(
                f"logos must have features to be found by, got none in {', '.join(plain)}: "
                "they would never be found"
            )
        sizes = [len(each) for each in found.values()]
        owners = np.repeat(np.arange(len(found), dtype=np.int32), sizes)
        return cls(tuple(found), np.concatenate(list(found.values())), owners)

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many descriptors each logo has."""
        return np.bincount(self.owners, minlength=len(self.names))

    def part(self, number: int, parts: int) -> LogoIndex:
        """One of so many parts: each descriptor is in just one of them, so that matches add up."""
        chosen = slice(number, None, parts)
        return LogoIndex(self.names, self.descriptors[chosen], self.owners[chosen])

    def matches(self, descriptors: np.ndarray, distance: float) -> np.ndarray:
        """For each logo, how many of its descriptors have one of these within `distance` (L2)."""
        if not len(descriptors) or not len(self.descriptors):
            return np.zeros(len(self.names), np.int64)
        # Whole numbers below 2^24 all the way, so that 32 bits are exact.
        theirs, ours = descriptors.astype(np.float32), self.descriptors.astype(np.float32)
        squared = (theirs**2).sum(1)[:, None] + (ours**2).sum(1) - 2.0 * (theirs @ ours.T)
        near = squared.min(axis=0) <= distance**2
        return np.bincount(self.owners[near], minlength=len(self.names))
