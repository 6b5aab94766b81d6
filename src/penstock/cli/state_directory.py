"""What the commands may ask of a state directory, whether an engine runs on it or not."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from penstock.errors import PenstockError
from penstock.measure.changes import Change
from penstock.measure.minutes import SinkSpan, StageMinute
from penstock.measure.turns import KeptTurn
from penstock.plan.changes import PlanChange
from penstock.plan.elastic import Record
from penstock.plan.slot_changes import SlotLine, slot_line_from_json
from penstock.scheduling.decisions import Decision, decision_from_json

DEFAULT = Path("penstock-state")
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class StateDirectory:
    """A directory that an engine keeps its state in."""

    path: Path

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            raise PenstockError(
                f"the state directory must exist, got {self.path}: name the one your engine was given, "
                "with --state"
            )

    @property
    def pipelines(self) -> list[str]:
        """The names of those that have state here."""
        return sorted(file.parent.name for file in self.path.glob("*/pipeline.json"))

    def folder(self, pipeline: str) -> Path:
        """Where a pipeline's state lies; refuses one that has none."""
        if pipeline not in self.pipelines:
            known = ", ".join(self.pipelines) or "none"
            raise PenstockError(f"no pipeline {pipeline!r} has state in {self.path}, which knows: {known}")
        return self.path / pipeline

    def failure(self, pipeline: str) -> dict[str, Any] | None:
        """Stage, reason and time of the error that stopped a pipeline; None if none did."""
        path = self.folder(pipeline) / "failed.json"
        if not path.exists():
            return None
        try:
            return dict(json.loads(path.read_text()))
        except ValueError:
            # A full disk can have cut it short: that it is there says enough.
            return {"stage": "unknown", "reason": "the reason could not be written"}

    @property
    def engine_process(self) -> str | None:
        """The process id of the engine that runs on it; None if none does.

        Asked by trying for the engine's own lock, for a moment and without keeping it.
        """
        try:
            file = os.open(self.path / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
        finally:
            os.close(file)
        return None

    def profiles(self) -> dict[str, dict[str, float]]:
        """What the turns of each stage cost, as `Profiler.from_json` reads it; empty where none was kept."""
        path = self.path / "profiles.json"
        if not path.exists():
            return {}
        try:
            return dict(json.loads(path.read_text()))
        except ValueError as error:
            raise PenstockError(
                f"{path} must be readable, got {error}: remove it and profile again, nothing else is in it"
            ) from error

    def last_rates(self) -> dict[str, float]:
        """Rows per second that came to each stage, in the last minute that is kept of it."""
        return {minute.stage: minute.figures.arrival_rows_per_second for minute in self.minutes()}

    def decisions(self) -> Iterator[Decision]:
        """All decisions kept, oldest first. A line that a crash cut short is passed over."""
        yield from self._kept("decisions", decision_from_json)

    def minutes(self) -> Iterator[StageMinute]:
        """The figures of stages by minute, oldest first, as far as they are kept."""
        yield from self._kept("minutes", StageMinute.from_json)

    def plans(self) -> Iterator[PlanChange]:
        """The plans of batch sizes that were put in force, oldest first, as far as they are kept."""
        yield from self._kept("plans", PlanChange.from_json)

    def elastic_looks(self) -> Iterator[Record]:
        """What the managers of replicas and nodes saw and decided, oldest first, as far as it is kept."""
        yield from self._kept("elastic", Record.from_json)

    def slots(self) -> Iterator[SlotLine]:
        """Changes of slots and decisions about them, oldest first, as far as they are kept."""
        yield from self._kept("slots", slot_line_from_json)

    def sinks(self) -> Iterator[SinkSpan]:
        """Latency at the sinks, ten seconds at a time, oldest first, as far as it is kept."""
        yield from self._kept("sinks", SinkSpan.from_json)

    def changes(self) -> Iterator[Change]:
        """What was changed, oldest first, as far as it is kept."""
        yield from self._kept("changes", Change.from_json)

    def turns(self) -> Iterator[KeptTurn]:
        """Who ran when, oldest first, as far as it is kept."""
        yield from self._kept("turns", KeptTurn.from_json)

    def _kept(self, name: str, read: Callable[[Any], Kept]) -> Iterator[Kept]:
        for path in (self.path / f"{name}.1.jsonl", self.path / f"{name}.jsonl"):
            if not path.exists():
                continue
            with path.open(errors="replace") as lines:
                for line in lines:
                    try:
                        yield read(json.loads(line))
                    except (ValueError, TypeError, KeyError, AttributeError, PenstockError):
                        continue
