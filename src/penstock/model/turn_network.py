"""All stages together, turn by turn: E[T] of an input, where the next stage takes what one has written.

A stage's turn takes all that waits, and its rows come to the next stage all at once. So slots for one stage
change how many rows come together further down, and E[T] is no sum of functions of one stage's slots each
(`Network`). The turns of a while are gone through instead, by the costs that were measured. The
same arrivals and the same chance hold for all slots, so that what differs between two allocations is theirs.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from math import ceil, floor, inf
from statistics import fmean

from penstock.model.dealt_cost import DealtCost, Slowest, slowest_task
from penstock.model.flow import OUTSIDE, Reads, Sources
from penstock.model.network import Network
from penstock.model.stage_model import check_number

FLOORS = 240.0
"""For so many times as long as an input takes at least, inputs come."""
UNCOUNTED = 0.2
"""Of that time, in which queues fill."""
MOST_INPUTS = 6000
"""That come by themselves; more than that come some at a time."""
LEAST_INPUTS = 50
DRAWS = 1024
"""Of each kind of chance, used in rotation; a power of two."""
SPELLS = 16
"""That are gone through for what is told of a short one, each with arrivals of its own."""
MOST_SINGLY = 64
"""Rows for which it is drawn one by one whether they are kept."""


@dataclass(frozen=True)
class Inflow:
    """Inputs from outside."""

    inputs_per_second: float
    rows: int = 1
    """Of an input."""
    scv: float = 1.0
    """Squared coefficient of variation of the time between two."""
    sources: Sources = field(default_factory=lambda: {OUTSIDE: 1.0})
    """What they come from, each as often as it has of all rows."""

    def __post_init__(self) -> None:
        check_number("the rate of inputs", self.inputs_per_second, 0.0, "none would ever come", above=True)
        check_number("the rows of an input", self.rows, 1, "nothing would come")
        check_number("the squared coefficient of variation of arrivals", self.scv, 0.0, "no spread is less")

    def joined(self, count: int) -> Inflow:
        """The same rows with so many inputs at a time."""
        rate, scv = self.inputs_per_second / count, self.scv / count
        return replace(self, inputs_per_second=rate, rows=self.rows * count, scv=scv)

    def times(self, count: int, chance: random.Random) -> list[float]:
        """When so many inputs come; gaps are gamma's, with a mean of exactly what is declared."""
        gaps = [self._gap(chance) for _ in range(count)]
        scale, now, found = count / sum(gaps) / self.inputs_per_second, 0.0, []
        for gap in gaps:
            now += scale * gap
            found.append(now)
        return found

    def origins(self, count: int, chance: random.Random) -> list[str]:
        """Which source each of so many inputs comes from."""
        return chance.choices(list(self.sources), list(self.sources.values()), k=count)

    def _gap(self, chance: random.Random) -> float:
        return chance.gammavariate(1.0 / self.scv, self.scv) if self.scv > 1e-3 else 1.0


@dataclass(frozen=True)
class TurnNetwork(Network):
    """E[T](k) of stages that depend on each other.

    `stages` has them one by one: what they need at least, and where a search for slots begins.

    >>> from penstock.model.dealt import DealtTurns
    >>> from penstock.model.flow import Read
    >>> from penstock.model.network import NetworkStage
    >>> costs = {"sift": DealtCost(0.1, 0.5), "match": DealtCost(0.1, 0.4)}
    >>> reads = {"sift": (Read("", 1.0),), "match": (Read("sift", 1.0),)}
    >>> alone = [NetworkStage(name, DealtTurns(6.0, 0.1, each.row_seconds)) for name, each in costs.items()]
    >>> together = TurnNetwork(tuple(alone), costs, reads, Inflow(6.0))
    >>> [round(together.sojourn_seconds({"sift": k, "match": 3}), 1) for k in (3, 4, 6)]
    [inf, 4.0, 3.4]
    """

    costs: Mapping[str, DealtCost]
    reads: Reads
    inflow: Inflow
    seed: int = 1
    _known: dict[tuple[int, ...], list[float]] = field(default_factory=dict, compare=False, repr=False)
    _made: dict[int, list[_Passage]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def separable(self) -> bool:
        return False

    @cached_property
    def floor_seconds(self) -> float:
        """A turn of one row at each stage that an input passes."""
        return sum(
            each.weight * (self.costs[each.name].fixed_seconds + self.costs[each.name].row_seconds)
            for each in self.stages
        )

    def sojourn_seconds(self, slots: Mapping[str, int]) -> float:
        if not self.keeps_up(slots):
            return inf
        return sum(each.weight * mean for each, mean in zip(self.stages, self._means(slots), strict=True))

    def sojourn_in_spell(self, slots: Mapping[str, int], seconds: float, uncounted: float = 0.0) -> float:
        """E[T] in so many seconds, of which the first do not count, where nothing waits at their begin.

        In the long run queues near their limit take minutes to fill, and others never cease to grow.
        """
        given, told = [slots[each.name] for each in self.stages], []
        for passage in self._spells(max(round(self.inflow.inputs_per_second * seconds), 1)):
            means = passage.means(given, uncounted)
            told.append(sum(each.weight * mean for each, mean in zip(self.stages, means, strict=True)))
        return fmean(told)

    def _spells(self, inputs: int) -> list[_Passage]:
        """Of so many inputs each; the same for all slots."""
        if inputs not in self._made:
            names, seeds = [each.name for each in self.stages], range(self.seed, self.seed + SPELLS)
            self._made[inputs] = [_Passage(names, self, self.inflow, inputs, seed) for seed in seeds]
        return self._made[inputs]

    def scaled(self, factor: float) -> TurnNetwork:
        stages = tuple(each.scaled(factor) for each in self.stages)
        inflow = replace(self.inflow, inputs_per_second=factor * self.inflow.inputs_per_second)
        return TurnNetwork(stages, self.costs, self.reads, inflow, self.seed)

    def keeps_up(self, slots: Mapping[str, int]) -> bool:
        """Whether no queue grows without end."""
        return all(slots[each.name] > each.model.busy_slots for each in self.stages)

    def stage_seconds(self, slots: Mapping[str, int]) -> dict[str, float]:
        """E[T_i] of a row at each stage, of the turns that are gone through.

        Where a queue grows without end there is no end of them, and the stages are told of one by one.
        """
        if not self.keeps_up(slots):
            return super().stage_seconds(slots)
        return dict(zip((each.name for each in self.stages), self._means(slots), strict=True))

    def gain_seconds(self, slots: Mapping[str, int]) -> dict[str, float]:
        if not self.keeps_up(slots):
            return super().gain_seconds(slots)
        now, names = self.sojourn_seconds(slots), [each.name for each in self.stages]
        return {name: now - self.sojourn_seconds({**slots, name: slots[name] + 1}) for name in names}

    def _means(self, slots: Mapping[str, int]) -> list[float]:
        given = tuple(slots[each.name] for each in self.stages)
        if given not in self._known:
            passage = self._passage
            self._known[given] = passage.means(given, UNCOUNTED * passage.seconds)
        return self._known[given]

    @cached_property
    def _passage(self) -> _Passage:
        seconds = FLOORS * self.floor_seconds
        wanted = max(self.inflow.inputs_per_second * seconds, LEAST_INPUTS)
        inflow = self.inflow.joined(ceil(wanted / MOST_INPUTS))
        names = [each.name for each in self.stages]
        return _Passage(names, self, inflow, ceil(min(wanted, MOST_INPUTS)), self.seed)


class _Passage:
    """The way of the inputs of a while through the turns of all stages, which are told by their places."""

    def __init__(self, names: Sequence[str], network: TurnNetwork, inflow: Inflow, inputs: int, seed: int):
        chance = random.Random(seed)
        places = {name: place for place, name in enumerate(names)}
        self._costs = [network.costs[name] for name in names]
        self._made = [[read.rows_made for read in network.reads[name]] for name in names]
        first: dict[str, list[tuple[int, int]]] = {source: [] for source in inflow.sources}
        self._readers: list[list[tuple[int, int]]] = [[] for _ in names]
        for name in names:
            for edge, read in enumerate(network.reads[name]):
                outside = first.get(read.producer)
                to = self._readers[places[read.producer]] if outside is None else outside
                to.append((places[name], edge))
        self._rows = inflow.rows
        self._arrivals = inflow.times(inputs, chance)
        origins = inflow.origins(inputs, random.Random(seed))
        self._first = [first[source] for source in origins]
        self._normals = [[chance.gauss(0.0, 1.0) for _ in range(DRAWS)] for _ in names]
        self._evens = [[chance.random() for _ in range(DRAWS)] for _ in names]
        self._slowest: dict[tuple[int, int, int], Slowest] = {}

    @property
    def seconds(self) -> float:
        """Until the last input has come."""
        return self._arrivals[-1]

    def means(self, slots: Sequence[int], warm: float) -> list[float]:
        """What a row stays at each stage, of turns that end after so many seconds."""
        self._slots, count = slots, len(slots)
        self._waiting = [[0] * len(each) for each in self._made]
        self._came = [0.0] * count
        """The sum of when the rows that wait have come."""
        self._busy, self._drawn = [False] * count, [0] * count
        self._ends: list[tuple[float, int, int, int, float]] = []
        rows, seconds = [0] * count, [0.0] * count
        arrivals, ends, number = self._arrivals, self._ends, 0
        last = len(arrivals)
        while number < last or ends:
            if not ends or (number < last and arrivals[number] < ends[0][0]):
                for place, edge in self._first[number]:
                    self._come(place, edge, self._rows, arrivals[number])
                number += 1
                continue
            now, place, taken, made, came = heappop(ends)
            if now >= warm:
                rows[place] += taken
                seconds[place] += taken * now - came
            self._end(place, made, now)
        return [each / count if count else 0.0 for each, count in zip(seconds, rows, strict=True)]

    def _come(self, place: int, edge: int, rows: int, now: float) -> None:
        self._waiting[place][edge] += rows
        self._came[place] += rows * now
        if not self._busy[place]:
            self._begin(place, now)

    def _end(self, place: int, made: int, now: float) -> None:
        self._busy[place] = False
        if made:
            for reader, edge in self._readers[place]:
                self._come(reader, edge, made, now)
        if not self._busy[place] and any(self._waiting[place]):
            self._begin(place, now)

    def _begin(self, place: int, now: float) -> None:
        """A turn that takes all that waits; what it will make is known by then, and may be what costs."""
        took, cost = self._waiting[place], self._costs[place]
        rows, made = sum(took), self._made_of(place, took)
        seconds, costing = cost.fixed_seconds, made if cost.by_made else rows
        if costing and cost.row_seconds:
            slowest = self._slowest_of(place, costing)
            if slowest.spread:
                drawn = self._drawn[place] = (self._drawn[place] + 1) % DRAWS
                seconds += cost.row_seconds * slowest.drawn(self._normals[place][drawn])
            else:
                seconds += cost.row_seconds * slowest.mean
        heappush(self._ends, (now + seconds, place, rows, made, self._came[place]))
        self._waiting[place], self._came[place], self._busy[place] = [0] * len(took), 0.0, True

    def _slowest_of(self, place: int, rows: int) -> Slowest:
        key = place, rows, self._slots[place]
        if key not in self._slowest:
            self._slowest[key] = slowest_task(rows, self._slots[place], self._costs[place].scv)
        return self._slowest[key]

    def _made_of(self, place: int, took: Sequence[int]) -> int:
        """Whole rows: which are kept is chance, where there are few."""
        made, evens = 0, self._evens[place]
        for rows, each in zip(took, self._made[place], strict=True):
            if not rows or each == 1.0:
                made += rows
            elif each < 1.0 and rows <= MOST_SINGLY:
                begin = self._drawn[place] = (self._drawn[place] + rows) % DRAWS
                made += sum(evens[number - DRAWS] < each for number in range(begin, begin + rows))
            else:
                self._drawn[place] = (self._drawn[place] + 1) % DRAWS
                made += floor(rows * each + evens[self._drawn[place]])
        return made
