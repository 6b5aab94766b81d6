"""Who is on the campus, and where access points hang: names for the numbers that input is drawn in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import PenstockError


@dataclass(frozen=True)
class Campus:
    """Subjects with a device each, and buildings with as many access points each; numbered from 0.

    >>> campus = Campus(subjects=3, buildings=2, access_points=4)
    >>> campus.subject_names[2], campus.access_point_names[3]
    ('u00002', 'b001-ap01')
    """

    subjects: int = 10_000
    buildings: int = 200
    access_points: int = 2_000

    def __post_init__(self) -> None:
        if min(self.subjects, self.buildings) < 1 or self.access_points % self.buildings:
            raise PenstockError(
                "a campus must have subjects, buildings and as many access points in each building, "
                f"got {self.subjects}, {self.buildings} and {self.access_points}: nobody could be anywhere"
            )

    @property
    def points_per_building(self) -> int:
        return self.access_points // self.buildings

    @cached_property
    def subject_names(self) -> tuple[str, ...]:
        return tuple(f"u{number:05d}" for number in range(self.subjects))

    @cached_property
    def macs(self) -> tuple[str, ...]:
        """The address of each subject's device: locally administered, so that it is nobody's."""
        return tuple(map(_mac, self.subject_names))

    @cached_property
    def building_names(self) -> tuple[str, ...]:
        return tuple(f"b{number:03d}" for number in range(self.buildings))

    @cached_property
    def access_point_names(self) -> tuple[str, ...]:
        each = range(self.points_per_building)
        return tuple(f"{building}-ap{number:02d}" for building in self.building_names for number in each)

    @cached_property
    def places(self) -> Mapping[str, str]:
        """The building of every access point."""
        return {name: name.split("-")[0] for name in self.access_point_names}


def _mac(name: str) -> str:
    digest = hashlib.sha256(name.encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))
