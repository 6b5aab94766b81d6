"""Rows of many requests in one segment: each request is answered when that segment is durable."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.ingest.errors import KeyReused, NotTaken
from penstock.ingest.request_keys import RequestKeys, Taken
from penstock.queues.errors import SpoolClosed, SpoolFull
from penstock.queues.segment import Arrivals
from penstock.queues.spool import Spool

PRODUCER = "http"
GATHER_SECONDS = 0.005
GROUP_BYTES = 64 << 20


@dataclass(frozen=True)
class Receipt:
    """What became of a request: its rows, and whether they had been taken before."""

    rows: int
    repeated: bool = False


@dataclass(frozen=True, eq=False)
class Parcel:
    """The rows of one request. With a key they are taken once, however often they come."""

    table: pa.Table
    arrived: float
    key: str | None = None
    digest: str = ""
    answer: Future[Receipt] = field(default_factory=Future)

    @property
    def taken(self) -> list[Taken]:
        return [] if self.key is None else [Taken(self.key, self.digest, self.table.num_rows)]


class GroupCommit:
    """One thread that writes: what comes while a segment is being written is in the next one together."""

    def __init__(self, spool: Spool, clock: Callable[[], float] = time.time):
        self._spool = spool
        self._clock = clock
        newest = [Taken(*each) for each in spool.last_context(PRODUCER).get("requests", ())]
        self._keys = RequestKeys(spool.path / "requests", newest, clock(), fsync=spool.fsync)
        self._parcels: queue.SimpleQueue[Parcel | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-http-{spool.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def take(self, parcel: Parcel) -> Receipt:
        """Returns when the rows are durable; SpoolFull, KeyReused or NotTaken if they are not kept."""
        if self._closed.is_set():
            raise NotTaken("the receiver stops: the rows were not kept")
        self._parcels.put(parcel)
        while True:
            try:
                return parcel.answer.result(timeout=1.0)
            except TimeoutError:
                if not self._thread.is_alive():
                    raise NotTaken("the receiver stops: the rows were not kept") from None

    def close(self) -> None:
        """Writes what has come; who comes later is refused."""
        self._closed.set()
        self._parcels.put(None)
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        going = True
        while going:
            group, going = self._gather()
            try:
                self._write(group)
            except Exception as error:
                # Whatever it was: who waits must be told, and the next group has its chance.
                for parcel in group:
                    _fail(parcel, NotTaken(f"the rows could not be written ({error}): they were not kept"))

    def _gather(self) -> tuple[list[Parcel], bool]:
        """All that waits, once there is something, and whether more may come."""
        group: list[Parcel] = []
        size, due = 0, float("inf")
        while size < GROUP_BYTES:
            try:
                parcel = self._parcels.get(timeout=None if not group else max(due - time.monotonic(), 0.0))
            except queue.Empty:
                break
            if parcel is None:
                return group, False
            group.append(parcel)
            size += parcel.table.nbytes
            due = min(due, time.monotonic() + GATHER_SECONDS)
        return group, True

    def _write(self, group: list[Parcel]) -> None:
        first: dict[str, Parcel] = {}
        fresh, again = [], []
        for parcel in group:
            try:
                if (receipt := self._known(parcel, first)) is not None:
                    again.append((parcel, receipt))
                    continue
            except KeyReused as error:
                _fail(parcel, error)
                continue
            fresh.append(parcel)
        self._append(fresh)
        for parcel, receipt in again:
            # One that came twice in this group shares the fate of the first.
            failed = first[parcel.key].answer.exception() if parcel.key in first else None
            _fail(parcel, failed) if failed else parcel.answer.set_result(receipt)

    def _known(self, parcel: Parcel, first: dict[str, Parcel]) -> Receipt | None:
        if parcel.key is None:
            return None
        earlier = self._keys.find(parcel.key, parcel.digest)
        if earlier is not None:
            return Receipt(earlier.rows, repeated=True)
        before = first.setdefault(parcel.key, parcel)
        if before is parcel:
            return None
        if before.digest != parcel.digest:
            raise KeyReused(parcel.key)
        return Receipt(before.table.num_rows, repeated=True)

    def _append(self, parcels: list[Parcel]) -> None:
        """All in one segment; where they do not fit together, each for itself."""
        if not parcels:
            return
        try:
            self._publish(parcels)
        except SpoolFull as full:
            if len(parcels) == 1:
                _fail(parcels[0], full)
                return
            for parcel in parcels:
                self._append([parcel])
        except (SpoolClosed, OSError) as error:
            for parcel in parcels:
                _fail(parcel, NotTaken(f"the rows could not be written ({error}): they were not kept"))

    def _publish(self, parcels: list[Parcel]) -> None:
        taken = [each for parcel in parcels for each in parcel.taken]
        known = [*self._keys.unsaved, *taken]
        context = {"requests": [[each.key, each.digest, each.rows] for each in known]} if known else {}
        table = pa.concat_tables([parcel.table for parcel in parcels])
        arrivals = Arrivals().merge(Arrivals.at(each.arrived, each.table.num_rows) for each in parcels)
        self._spool.append(table, producer=PRODUCER, arrivals=arrivals, timeout=0.0, context=context)
        self._keys.keep(taken, self._clock())
        for parcel in parcels:
            parcel.answer.set_result(Receipt(parcel.table.num_rows))


def _fail(parcel: Parcel, error: BaseException) -> None:
    if not parcel.answer.done():
        parcel.answer.set_exception(error)
