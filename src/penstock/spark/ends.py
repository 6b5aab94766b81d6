"""Where a stage's rows go: first durable and unseen, then, once the turn is committed, shown."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import PenstockError
from penstock.pipeline import sinks
from penstock.queues.disk import Disk
from penstock.queues.manifest import Pending
from penstock.queues.spool import Spool
from penstock.spark.results import Result

Output = Mapping[str, Any]


@dataclass(frozen=True)
class Written:
    """What a turn wrote: how many rows, and how to show them, as JSON can hold it."""

    rows: int
    outputs: tuple[Output, ...] = ()


class SinkError(PenstockError):
    """A sink's own function failed; `__cause__` is what it raised."""

    def __init__(self, stage: str, error: BaseException):
        self.stage = stage
        super().__init__(
            f"the sink's function at stage {stage!r} raised {type(error).__name__}: {error}: "
            "the pipeline stops, its queues are kept"
        )


class EndAway(PenstockError):
    """An end that went away in the middle of a turn: its rows wait, and the turn runs again."""


class End(Protocol):
    """Takes the result of a turn."""

    shows: ClassVar[str | None]
    """What its outputs are told by; None for an end that keeps nothing to be shown."""

    def write(self, result: Result, batch: int) -> Written:
        """Runs the turn's action and keeps its rows where nobody sees them yet."""
        ...

    def show(self, output: Output) -> None:
        """Makes what `write` kept visible; again, after a crash, it does nothing."""
        ...


@runtime_checkable
class RemoteEnd(End, Protocol):
    """An end in a process that may go away and come back. Only direct turns can be given back for it."""

    @property
    def ready(self) -> bool:
        """Whether it is there; not before `watch` was called."""
        ...

    def watch(self, changed: Callable[[], None]) -> None:
        """Begins to look for it, and has `changed` called whenever `ready` has changed."""
        ...

    def close(self) -> None:
        """It is needed no more."""
        ...


@dataclass(frozen=True)
class QueueEnd:
    """The end in a spool: the next stage's queue, or one that the user opened."""

    shows: ClassVar[str | None] = "pending"
    spool: Spool
    producer: str

    @property
    def is_full(self) -> bool:
        """Whether the spool has a limit and has reached it: its consumers must catch up first."""
        free = self.spool.free_bytes
        return free is not None and free <= 0

    def write(self, result: Result, batch: int) -> Written:
        if not result.small:
            with result.files() as files:
                pending = self.spool.adopt_pending(
                    files, self.producer, batch, result.arrivals, context=result.context
                )
            return Written(pending.rows, (self._output(pending),))
        table = result.table()
        if table.num_rows == 0:
            return Written(0)
        pending = self.spool.write_pending(table, self.producer, batch, result.arrivals, result.context)
        return Written(table.num_rows, (self._output(pending),))

    def _output(self, pending: Pending) -> Output:
        return {"pending": pending.name, "from": str(self.spool.pending_path(pending.name))}

    def show(self, output: Output) -> None:
        self.spool.publish(output["pending"])


@dataclass(frozen=True)
class FolderEnd:
    """The end in a directory of files named by turn: a rename shows them, a second one changes nothing."""

    shows: ClassVar[str | None] = "to"
    folder: Path
    producer: str
    form: str
    disk: Disk

    def write(self, result: Result, batch: int) -> Written:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not result.small and self.form == "parquet":
            with result.files() as files:
                return self._adopt(files, batch)
        table = result.table()
        if table.num_rows == 0:
            return Written(0)
        hidden = self.folder / f".{self._stem(batch)}"
        output = self._output(hidden, f"{self._stem(batch)}{self._suffix}")
        self.disk.write(hidden, self._encoded(table))
        return Written(table.num_rows, (output,))

    def show(self, output: Output) -> None:
        if os.path.exists(output["from"]):
            self.disk.rename(Path(output["from"]), Path(output["to"]))

    @property
    def _suffix(self) -> str:
        return ".parquet" if self.form == "parquet" else ".jsonl"

    def _stem(self, batch: int) -> str:
        return f"{self.producer}-{batch:09d}"

    def _encoded(self, table: pa.Table) -> bytes:
        if self.form != "parquet":
            return "".join(_json_line(row) for row in table.to_pylist()).encode()
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        return buffer.getvalue()

    def _adopt(self, files: list[Path], batch: int) -> Written:
        rows, outputs = 0, []
        for number, file in enumerate(files):
            rows += pq.read_metadata(file).num_rows
            hidden = self.folder / f".{self._stem(batch)}-{number}"
            outputs.append(self._output(hidden, f"{self._stem(batch)}-{number}{self._suffix}"))
            self.disk.move_in(file, hidden)
        return Written(rows, tuple(outputs))

    def _output(self, hidden: Path, name: str) -> Output:
        target = self.folder / name
        if target.exists():
            # A turn that is not in the journal can have shown nothing.
            raise PenstockError(
                f"sink {str(self.folder)!r} must not hold {name} before its turn, but does: "
                "it is of another run, whose state is gone; move its files away, "
                "or give that run's state directory"
            )
        return {"from": str(hidden), "to": str(target)}


@dataclass(frozen=True)
class CallEnd:
    """The end in a function, called before the turn is committed: a turn that runs again calls it again."""

    shows: ClassVar[str | None] = None
    sink: sinks.Callback | sinks.Console
    producer: str

    def write(self, result: Result, batch: int) -> Written:
        table = result.table()
        if isinstance(self.sink, sinks.Console):
            self._print(table, batch, self.sink.rows)
            return Written(table.num_rows)
        try:
            self.sink.function(table, batch)
        except BaseException as error:  # `sys.exit()` would end nothing but this thread
            raise SinkError(self.producer, error) from error
        return Written(table.num_rows)

    def _print(self, table: pa.Table, batch: int, rows: int) -> None:
        if table.num_rows:
            print(f"turn {batch}: {table.num_rows} rows")
            print(table.slice(0, rows).to_pandas().to_string(index=False))

    def show(self, output: Output) -> None:
        raise PenstockError("a function keeps nothing to be shown later")


@dataclass(frozen=True)
class FrameEnd:
    """The end in a function as foreachBatch takes it; its rows are not counted, as that would cost a job."""

    shows: ClassVar[str | None] = None
    sink: sinks.ForeachBatch
    producer: str

    def write(self, result: Result, batch: int) -> Written:
        try:
            self.sink.function(result.frame, batch)
        except BaseException as error:  # `sys.exit()` would end nothing but this thread
            raise SinkError(self.producer, error) from error
        return Written(0)

    def show(self, output: Output) -> None:
        raise PenstockError("a function keeps nothing to be shown later")


def _json_line(row: Mapping[str, Any]) -> str:
    try:
        return json.dumps(row, default=_plain, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_finite(row), default=_plain, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """The same without numbers that are none: JSON has no word for them, and null is what readers take."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    """Values that JSON has no form for: times as ISO 8601, bytes as hexadecimal digits, the rest as text."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
