"""How people on a campus associate: a model fitted to the SmartSPEC trace, drawn with a seed.

A Cox process with clusters of two kinds (Neyman and Scott): the rate follows the hours of a day, a
device that associates does so again within seconds, and where a class ends a whole group moves at once.
All is in the time of the trace; a day is its six busy hours, 03:00 to 09:00.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.workloads.wifi.campus import Campus

DAY_SECONDS = 6 * 3600
TRACE_PEOPLE = 994
"""People in the trace: groups grow with the campus, as if each of them stood for several."""


@dataclass(frozen=True)
class Drawn:
    """Associations by time: seconds of the trace, and the numbers of subject and access point."""

    seconds: np.ndarray
    subjects: np.ndarray
    access_points: np.ndarray

    def __len__(self) -> int:
        return len(self.seconds)


@dataclass(frozen=True)
class Crowd:
    """The parameters, as fitted to the trace; docs/wifi.md has what was measured there.

    `profile` are shares of a day's rows by half hours. `group_rows` and `group_spread` are median and
    sigma of the lognormal size of a group, at the trace's number of people.
    """

    rows_per_subject: float = 22.85
    profile: tuple[float, ...] = (5.8, 7.0, 8.6, 10.1, 9.6, 9.8, 10.3, 10.4, 10.3, 9.4, 4.9, 3.8)
    again: float = 1 / 3
    again_seconds: float = 5.0
    groups: float = 12.0
    group_rows: float = 32.0
    group_spread: float = 1.1
    group_seconds: float = 10.0
    persons_of_group: float = 0.8
    moves: float = 0.16
    popularity: float = 1.3
    activity_shape: float = 4.4

    def day(self, campus: Campus, chance: np.random.Generator) -> Drawn:
        """One day of everybody, by time."""
        alone = self._alone(campus, chance)
        grouped = self._grouped(campus, chance)
        seconds, subjects, buildings = (np.concatenate(pair) for pair in zip(alone, grouped, strict=True))
        kept = seconds < DAY_SECONDS
        order = np.argsort(seconds[kept], kind="stable")
        seconds, subjects, buildings = (each[kept][order] for each in (seconds, subjects, buildings))
        return Drawn(seconds, subjects, _places(campus, subjects, buildings, chance))

    def _alone(self, campus: Campus, chance: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Those who come by themselves: a building for each that moves, -1 for who stays where he is."""
        groups = self.groups * self.group_rows * float(np.exp(self.group_spread**2 / 2)) / TRACE_PEOPLE
        rows = campus.subjects * (self.rows_per_subject - groups) * (1 - self.again)
        first = self._moments(int(chance.poisson(rows)), chance)
        activity = chance.gamma(self.activity_shape, size=campus.subjects)
        who = chance.choice(campus.subjects, len(first), p=activity / activity.sum())
        often = chance.geometric(1 - self.again, len(first))
        delays = chance.exponential(self.again_seconds, int(often.sum()))
        delays[np.cumsum(often) - often] = 0.0
        seconds, subjects = np.repeat(first, often) + delays, np.repeat(who, often)
        goes = chance.random(len(seconds)) < self.moves
        return seconds, subjects, np.where(goes, self._buildings(campus, len(seconds), chance), -1)

    def _grouped(self, campus: Campus, chance: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Groups that arrive in a building together, within seconds of each other."""
        begins = self._moments(int(chance.poisson(self.groups)), chance)
        scale = self.group_rows * campus.subjects / TRACE_PEOPLE
        sizes = np.ceil(chance.lognormal(np.log(scale), self.group_spread, len(begins))).astype(np.int64)
        targets = self._buildings(campus, len(begins), chance)
        members = [self._members(campus, int(size), chance) for size in sizes]
        delays = chance.exponential(self.group_seconds, int(sizes.sum()))
        subjects = np.concatenate(members) if members else np.empty(0, dtype=np.int64)
        return np.repeat(begins, sizes) + delays, subjects, np.repeat(targets, sizes)

    def _members(self, campus: Campus, size: int, chance: np.random.Generator) -> np.ndarray:
        persons = chance.integers(campus.subjects, size=max(round(size * self.persons_of_group), 1))
        return chance.choice(persons, size)

    def _moments(self, count: int, chance: np.random.Generator) -> np.ndarray:
        shares = np.array(self.profile) / sum(self.profile)
        step = DAY_SECONDS / len(shares)
        return (chance.choice(len(shares), count, p=shares) + chance.random(count)) * step

    def _buildings(self, campus: Campus, count: int, chance: np.random.Generator) -> np.ndarray:
        weights = 1.0 / np.arange(1, campus.buildings + 1) ** self.popularity
        return chance.choice(campus.buildings, count, p=weights / weights.sum())


def _places(
    campus: Campus, subjects: np.ndarray, buildings: np.ndarray, chance: np.random.Generator
) -> np.ndarray:
    """The access point of each row: an own one in the building it moves to, else that of the row before."""
    order = np.argsort(subjects, kind="stable")
    by_subject, goes = subjects[order], buildings[order] >= 0
    goes[np.flatnonzero(np.diff(by_subject, prepend=-1))] = True
    points = chance.integers(campus.points_per_building, size=len(order))
    # Whoever has not moved yet begins in a building that is his own.
    begins = np.where(buildings[order] >= 0, buildings[order], by_subject % campus.buildings)
    last_move = np.maximum.accumulate(np.where(goes, np.arange(len(order)), 0))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = (begins * campus.points_per_building + points)[last_move]
    return found
