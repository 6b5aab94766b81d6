"""What a stage has taken and given, durable: the one file whose replacement commits a turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.queues.disk import Disk
from penstock.queues.offsets import Offsets
from penstock.queues.position import EARLIEST, Position
from penstock.queues.segment import Slice

# (segment's sequence, first row, rows): enough to take the same rows again.
Taken = tuple[int, int, int]
Grants = Mapping[int, Mapping[str, tuple[Taken, ...]]]


class CorruptJournal(PenstockError):
    """A stage's journal that cannot be read: its turns can be neither repeated nor left out."""

    def __init__(self, path: Path, came: str):
        self.path = path
        super().__init__(
            f"the journal {path} must be JSON as Penstock wrote it, got {came}: the stage is not started; "
            "restore the file, or remove the pipeline's state to begin anew"
        )


@dataclass(frozen=True)
class Entry:
    """The state of a stage after a turn.

    `positions`: rows behind them are released. `grants`: those not released yet, the last one done
    (`grant`) and, while a held turn runs, the one after it. `outputs` are what the last turn wrote,
    each shown again at recovery, which does nothing if it was shown before. `flush`: windows still
    wait for a batch without rows. `progress`: how far event time has come, by column and source.
    """

    batch: int = -1
    grant: int = 0
    positions: Mapping[str, Position | Offsets] = field(default_factory=dict)
    grants: Grants = field(default_factory=dict)
    outputs: tuple[Mapping[str, Any], ...] = ()
    flush: bool = False
    progress: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def position(self, queue: str) -> Position:
        """How far the stage has come in a spool."""
        found = self.positions.get(queue, EARLIEST)
        assert isinstance(found, Position)
        return found

    def offsets(self, queue: str) -> Offsets:
        """How far the stage has come in the topics of a source."""
        found = self.positions.get(queue, Offsets())
        assert isinstance(found, Offsets)
        return found

    def with_grant(self, number: int, taken: Mapping[str, tuple[Slice, ...]]) -> Entry:
        """The same, with a grant about to run."""
        named = {
            queue: tuple((each.segment.sequence, each.start, each.rows) for each in slices)
            for queue, slices in taken.items()
        }
        return replace(self, grants={**self.grants, number: named})

    def to_json(self) -> dict[str, Any]:
        return {
            "batch": self.batch,
            "grant": self.grant,
            "positions": {queue: position.to_json() for queue, position in self.positions.items()},
            "grants": {str(number): taken for number, taken in self.grants.items()},
            "outputs": list(self.outputs),
            "flush": self.flush,
            "progress": {column: dict(taken) for column, taken in self.progress.items()},
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Entry:
        grants = {
            int(number): {queue: tuple(tuple(each) for each in slices) for queue, slices in taken.items()}
            for number, taken in fields["grants"].items()
        }
        return cls(
            batch=int(fields["batch"]),
            grant=int(fields["grant"]),
            positions={queue: _position(each) for queue, each in fields["positions"].items()},
            grants=grants,
            outputs=tuple(fields["outputs"]),
            flush=bool(fields["flush"]),
            progress=fields.get("progress", {}),
        )


def _position(fields: Mapping[str, Any]) -> Position | Offsets:
    return Offsets.from_json(fields) if "offsets" in fields else Position.from_json(fields)


class Journal:
    """Keeps the newest entry of one stage in one file, replaced as a whole."""

    def __init__(self, path: Path, disk: Disk):
        self._path = path
        self._disk = disk
        self.entry = self._read()

    def write(self, entry: Entry) -> None:
        """Makes `entry` the state of the stage; after a crash either it or the one before is there."""
        self._disk.replace(self._path, json.dumps(entry.to_json()).encode())
        self.entry = entry

    def _read(self) -> Entry:
        if not self._path.exists():
            return Entry()
        text = self._path.read_text()
        try:
            return Entry.from_json(json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptJournal(self._path, f"{text[:60]!r} ({error})") from error
