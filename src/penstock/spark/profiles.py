"""What the stages of one engine have been learned to cost, for the policies and plans that go by it."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable
from pathlib import Path

from penstock.measure.chain import steepness
from penstock.measure.profiles import Profiler, StageProfile
from penstock.measure.turns import TurnRecord
from penstock.queues.disk import Disk
from penstock.stages.stage import StageGraph

log = logging.getLogger("penstock")


class Profiles:
    """Profiles of all stages by name; every method may be called from any thread.

    Reading takes no lock: it is done at every look at a stage, and finds what was last put there whole.
    With a `file` they are kept between runs.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._file = file
        self._profilers: dict[str, Profiler] = {}
        self._known: dict[str, StageProfile] = {}
        self._steepness: dict[str, float | None] = {}
        self._fresh = 0
        if file is not None:
            self._profilers = _read(file)
        for name, profiler in self._profilers.items():
            if (profile := profiler.profile) is not None:
                self._known[name] = profile

    def keep(self, after_turns: int = 1) -> None:
        """Writes what is known to the file, where there is one, if so many turns were learned since."""
        if self._file is None or self._fresh < after_turns:
            return
        self._fresh = 0
        self.keep_in(self._file)

    def keep_in(self, file: Path) -> None:
        """Writes what is known there, beside what is known there of other stages."""
        with self._lock:
            own = {name: profiler.to_json() for name, profiler in self._profilers.items()}
        others = {} if file == self._file else {name: each.to_json() for name, each in _read(file).items()}
        Disk(False).replace(file, json.dumps(others | own).encode())

    def learn(
        self, record: TurnRecord, rows_out: int, *, loads_state: bool = False, cold: bool = False
    ) -> None:
        """Takes in a turn that let `rows_out` rows out, dead letters aside."""
        with self._lock:
            profiler = self._profilers.setdefault(record.stage, Profiler())
            profiler.learn(record, rows_out, loads_state=loads_state, cold=cold)
            self._fresh += 1
            profile = profiler.profile
            if profile is not None:
                self._known[record.stage] = profile

    def rescale(self, stage: str, slots: int) -> None:
        """Turns of the stage have so many slots from now on; what that makes of rows, turns correct soon."""
        with self._lock:
            profiler = self._profilers.get(stage)
            if profiler is None:
                return
            profiler.rescale(slots)
            if (profile := profiler.profile) is not None:
                self._known[stage] = profile

    def of(self, stage: str) -> StageProfile | None:
        """None before its first turn with rows."""
        return self._known.get(stage)

    def steepness_of(self, stage: str) -> float | None:
        """As of the last refresh, 0.0 while it is not known."""
        return self._steepness.get(stage)

    def refresh(self, graphs: Iterable[StageGraph]) -> None:
        """Computes the steepness of the stages of these pipelines.

        Rows that go round a loop count as gone at the end of a round.
        """
        readers = {
            stage.name: [each.name for each in graph.below(stage, loops=False)]
            for graph in graphs
            for stage in graph.stages
        }
        with self._lock:
            known = {name: profile for name, profile in self._known.items() if name in readers}
        self._steepness = steepness(readers, known)

    def forget(self, names: Iterable[str]) -> None:
        """These stages never come back."""
        with self._lock:
            for name in names:
                self._profilers.pop(name, None)
                self._known.pop(name, None)


def _read(file: Path) -> dict[str, Profiler]:
    """What a file keeps; nothing where there is none, or one that cannot be read."""
    if not file.exists():
        return {}
    try:
        stored = json.loads(file.read_text())
        return {name: Profiler.from_json(each) for name, each in stored.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s could not be read, costs are learned anew: %s", file, error)
        return {}
