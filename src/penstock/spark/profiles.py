"""What the stages of one engine have been learned to cost, for the policies that go by it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from penstock.measure.chain import steepness
from penstock.measure.profiles import Profiler, StageProfile
from penstock.measure.turns import TurnRecord
from penstock.stages.stage import StageGraph


class Profiles:
    """Profiles of all stages by name; every method may be called from any thread.

    Reading takes no lock: it is done at every look at a stage, and finds what was last put there whole.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._profilers: dict[str, Profiler] = {}
        self._known: dict[str, StageProfile] = {}
        self._steepness: dict[str, float] = {}

    def learn(self, record: TurnRecord, rows_out: int) -> None:
        """Takes in a turn that let `rows_out` rows out, dead letters aside."""
        with self._lock:
            profiler = self._profilers.setdefault(record.stage, Profiler())
            profiler.learn(record, rows_out)
            profile = profiler.profile
            if profile is not None:
                self._known[record.stage] = profile

    def of(self, stage: str) -> StageProfile | None:
        """None before its first turn with rows."""
        return self._known.get(stage)

    def steepness_of(self, stage: str) -> float:
        """As of the last refresh, 0.0 while it is not known."""
        return self._steepness.get(stage, 0.0)

    def refresh(self, graphs: Iterable[StageGraph]) -> None:
        """Computes the steepness of the stages of these pipelines, and forgets all other stages.

        Rows that go round a loop count as gone at the end of a round.
        """
        readers = {
            stage.name: [each.name for each in graph.below(stage, loops=False)]
            for graph in graphs
            for stage in graph.stages
        }
        with self._lock:
            for name in self._profilers.keys() - readers.keys():
                del self._profilers[name]
                self._known.pop(name, None)
            known = dict(self._known)
        self._steepness = steepness(readers, known)
