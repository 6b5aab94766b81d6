"""Acts on slots: stages that run go on with other numbers of them, and every change is written down."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import PenstockError
from penstock.plan.slot_changes import SlotChange, SlotLine
from penstock.spark.change_log import ChangeLog
from penstock.spark.compile import RunningStage
from penstock.spark.dispatcher import Dispatcher
from penstock.spark.kept_lines import KeptLines
from penstock.spark.running import RunningPipeline

log = logging.getLogger("penstock")

ASKED_FOR = "asked for"


class Rescaler:
    """Changes slots, one stage after the other; every method may be called from any thread."""

    def __init__(self, kept: KeptLines, dispatcher: Dispatcher, changes: ChangeLog):
        self._kept = kept
        self._changes = changes
        self._dispatcher = dispatcher
        self._changing = threading.Lock()

    def apply(
        self, pipelines: Sequence[RunningPipeline], wanted: Mapping[str, int], reason: str = ASKED_FOR
    ) -> tuple[SlotChange, ...]:
        """Gives each named stage so many slots; the changes, without those that had them already.

        All names and numbers are checked before anything is changed.
        """
        found = {name: _find(pipelines, name) for name in wanted}
        for name, slots in wanted.items():
            self._check(name, slots)
        changes = []
        with self._changing:
            for name, (running, stage) in found.items():
                if stage.slots != wanted[name]:
                    changes.append(self._change(running, stage, wanted[name], reason))
        return tuple(changes)

    def keep(self, line: SlotLine) -> None:
        """Writes a line to the journal of slots."""
        try:
            self._kept.add([line.to_json()])
        except OSError as error:
            log.warning("a change of slots could not be kept: %s", error)

    def _change(self, running: RunningPipeline, stage: RunningStage, slots: int, reason: str) -> SlotChange:
        before = stage.slots
        pause = running.rescale(stage, slots)
        way: Any = "restarted" if stage.books.kind == "held" else "next turn"
        change = SlotChange(self._dispatcher.clock(), stage.name, before, slots, reason, way, pause)
        self.keep(change)
        log.info("%s", change.line())
        self._changes.tell("slots", stage.name, f"{before} to {slots}", reason)
        return change

    def _check(self, name: str, slots: object) -> None:
        pool = self._dispatcher.slots
        if isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= pool:
            raise PenstockError(
                f"slots of stage {name!r} must be a whole number from 1 to {pool}, "
                f"the slots of the pool, got {slots!r}: nothing was changed"
            )


def _find(pipelines: Sequence[RunningPipeline], name: str) -> tuple[RunningPipeline, RunningStage]:
    stages = {stage.name: (running, stage) for running in pipelines for stage in tuple(running.stages)}
    if name not in stages:
        known = ", ".join(sorted(stages)) or "none"
        raise PenstockError(f"slots must be for a stage that runs, got {name!r}, of: {known}")
    return stages[name]
