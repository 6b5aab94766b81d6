"""What a query's checkpoint says of its state, and how that state is divided anew."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

StateStore = Literal["heap", "rocksdb"]
"""Where Spark keeps the state of a query: on the JVM's heap, or in RocksDB, which can be divided anew."""

PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_STATE = "org.apache.spark.sql.execution.streaming.state."
STORE_SETTINGS: Mapping[StateStore, Mapping[str, str]] = {
    "heap": {PROVIDER: _STATE + "HDFSBackedStateStoreProvider"},
    "rocksdb": {
        PROVIDER: _STATE + "RocksDBStateStoreProvider",
        # Each turn writes what changed, not a whole copy of its files.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
}

# Spark clones the session's settings when a query starts; two starts must not mix theirs.
_starting = threading.Lock()
compiling = threading.Lock()
"""Held while a session has other settings for how code is compiled, and by who makes a plan that is kept."""


class StateNotDivisible(PenstockError):
    """State in a store that Spark cannot divide anew."""

    def __init__(self, stage: str):
        self.stage = stage
        super().__init__(
            f"the state of stage {stage!r} must lie in RocksDB for its slots to change, but is on the heap: "
            "nothing was changed; begin the pipeline's state anew with Engine(state_store='rocksdb')"
        )


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one query. Its query must not run when `divide` is called."""

    path: Path

    @property
    def has_batches(self) -> bool:
        return bool(self._numbers("offsets"))

    @property
    def partitions(self) -> int | None:
        """Pieces of state, as of the last batch; None before the first."""
        offsets = self._numbers("offsets")
        return self._partitions(offsets[-1]) if offsets else None

    @property
    def is_divisible(self) -> bool:
        """Whether Spark can divide its state anew."""
        offsets = self._numbers("offsets")
        if not offsets:
            return True
        provider = self._settings(offsets[-1]).get(PROVIDER, "")
        return str(provider) == STORE_SETTINGS["rocksdb"][PROVIDER]

    @property
    def unfinished(self) -> int | None:
        """Into how many pieces its state was to be divided when that was broken off; None if it was not.

        Spark writes down the division as a batch of its own and commits that at the end: a last batch without
        a commit and with another number of pieces than the one before it is such a one.
        """
        offsets, commits = self._numbers("offsets"), self._numbers("commits")
        if len(offsets) < 2 or (commits and commits[-1] >= offsets[-1]):
            return None
        wanted = self._partitions(offsets[-1])
        return wanted if wanted != self._partitions(offsets[-2]) else None

    def divide(self, session: SparkSession, pieces: int) -> None:
        """Divides the state into so many pieces; broken off, it must be called again with the same number."""
        if not self.has_batches or (self.partitions == pieces and self.unfinished is None):
            return
        with settings_for_start(session, STORE_SETTINGS["rocksdb"]):
            session._streamingCheckpointManager.repartition(str(self.path), pieces)

    def _numbers(self, log: str) -> list[int]:
        folder = self.path / log
        if not folder.is_dir():
            return []
        return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())

    def _partitions(self, batch: int) -> int:
        return int(self._settings(batch)[PARTITIONS])

    def _settings(self, batch: int) -> Mapping[str, Any]:
        file = self.path / "offsets" / str(batch)
        try:
            found: Mapping[str, Any] = json.loads(file.read_text().splitlines()[1])["conf"]
        except (IndexError, KeyError, ValueError) as error:
            raise PenstockError(
                f"{file} must be as Spark wrote it, got {file.read_text()[:60]!r}: the state of its query "
                "cannot be told; restore the file, or remove the pipeline's state to begin anew"
            ) from error
        return found


@contextmanager
def settings_for_start(session: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Sets a session's settings while something starts that keeps what it finds then."""
    with _starting:
        before = {key: session.conf.get(key, None) for key in wanted}
        try:
            for key, value in wanted.items():
                session.conf.set(key, value)
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    session.conf.unset(key)
                else:
                    session.conf.set(key, old)
