"""The stages that wait for a turn: the first by the policy, the oldest, the one that must start soonest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, NamedTuple

from penstock.scheduling.laxity import start_by
from penstock.scheduling.stage_view import StageView


class Place(NamedTuple):
    """How far a stage is put off, its priority, until when, and whether it wants one of its first turns."""

    level: int
    priority: float
    until: float = inf
    untried: bool = False


class WaitingStages:
    """Views by name, in five orders. Among equals the one that has waited longer comes first.

    Views that were replaced or taken stay in the heaps until they come up or outnumber the others; an entry
    counts only while its version is the current one of its stage.
    """

    def __init__(self) -> None:
        self._views: dict[str, tuple[int, StageView, Place]] = {}
        self._by_place: list[tuple[int, float, float, str, int]] = []
        self._by_age: list[tuple[float, str, int]] = []
        self._untried: list[tuple[float, str, int]] = []  # by age
        self._by_start: list[tuple[float, str, int]] = []
        self._by_end: list[tuple[float, str, int]] = []  # of their being put off
        self._version = 0

    def __len__(self) -> int:
        return len(self._views)

    @property
    def names(self) -> KeysView[str]:
        return self._views.keys()

    def put(self, view: StageView, place: Place) -> None:
        """A stage waits, or waits with other figures than before."""
        self._version = version = self._version + 1
        self._views[view.name] = (version, view, place)
        heappush(self._by_place, (place.level, place.priority, view.ready_since, view.name, version))
        heappush(self._by_age, (view.ready_since, view.name, version))
        if place.untried:
            heappush(self._untried, (view.ready_since, view.name, version))
        if (by := start_by(view)) < inf:
            heappush(self._by_start, (by, view.name, version))
        if place.until < inf:
            heappush(self._by_end, (place.until, view.name, version))
        self._compact()

    def take(self, name: str) -> None:
        """The stage waits no more; nothing happens if it did not."""
        if self._views.pop(name, None) is not None:
            self._compact()

    def place_of(self, name: str) -> Place:
        """Where a stage that waits stands."""
        return self._views[name][2]

    def reorder(self, place_of: Callable[[StageView], Place]) -> None:
        """Gives all of them new places; none, if one has no place."""
        placed = [(view, place_of(view)) for _, view, _ in self._views.values()]
        for view, place in placed:
            self.put(view, place)

    @property
    def first(self) -> StageView | None:
        """The one whose turn is next by the policy."""
        return self._top(self._by_place)

    @property
    def oldest(self) -> StageView | None:
        """The one that has waited longest."""
        return self._top(self._by_age)

    @property
    def oldest_untried(self) -> StageView | None:
        """The one that has waited longest of those that want one of their first turns."""
        return self._top(self._untried)

    @property
    def soonest(self) -> StageView | None:
        """The one that must start first."""
        return self._top(self._by_start)

    @property
    def until(self) -> float:
        """When the first of those that are put off is so no more."""
        return self._by_end[0][0] if self._top(self._by_end) is not None else inf

    def put_off_until(self, now: float) -> list[StageView]:
        """Those that were put off until now at the latest; whoever asks gives them another place."""
        found = []
        while (view := self._top(self._by_end)) is not None and self._by_end[0][0] <= now:
            heappop(self._by_end)
            found.append(view)
        return found

    def in_order(self) -> Iterator[tuple[int, StageView]]:
        """How far each is put off, and the stage, as the policy has them: as many as are asked for."""
        places = [(self._by_place[0], 0)] if self._by_place else []
        while places:
            (level, *_, name, version), place = heappop(places)
            if self._is_current(name, version):
                yield level, self._views[name][1]
            for after in (2 * place + 1, 2 * place + 2):
                if after < len(self._by_place):
                    heappush(places, (self._by_place[after], after))

    def starting_before(self, latest: float) -> Iterator[StageView]:
        """Those that must start before then: from the top of the heap, not all of it."""
        places = [0]
        while places:
            place = places.pop()
            if place < len(self._by_start) and self._by_start[place][0] < latest:
                _, name, version = self._by_start[place]
                if self._is_current(name, version):
                    yield self._views[name][1]
                places += (2 * place + 1, 2 * place + 2)

    def _top(self, heap: list[Any]) -> StageView | None:
        while heap:
            *_, name, version = heap[0]
            if self._is_current(name, version):
                return self._views[name][1]
            heappop(heap)
        return None

    def _compact(self) -> None:
        """Keeps each heap below three times the stages that wait, at a constant average cost."""
        most = 3 * len(self._views)
        heaps: list[list[Any]] = [self._by_place, self._by_age, self._untried, self._by_start, self._by_end]
        for heap in heaps:
            if len(heap) > most:
                heap[:] = [entry for entry in heap if self._is_current(*entry[-2:])]
                heapify(heap)

    def _is_current(self, name: str, version: int) -> bool:
        current = self._views.get(name)
        return current is not None and current[0] == version
