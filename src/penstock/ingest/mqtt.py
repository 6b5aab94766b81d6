"""Messages of an MQTT broker into a spool: acknowledged there once they are durable here."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.extras import require
from penstock.ingest.mqtt_link import Batch, SubscriberLink
from penstock.ingest.mqtt_session import KeptSession
from penstock.pipeline.mqtt_source import Mqtt
from penstock.queues.errors import DiskFull, SpoolClosed, SpoolFull
from penstock.queues.segment import Arrivals
from penstock.queues.spool import Spool

log = logging.getLogger("penstock")

PRODUCER = "mqtt"
FULL_WAIT_SECONDS = 0.5
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.1, 2.0


class MqttFeeder:
    """Keeps a subscription, and appends what comes to a spool in batches.

    One thread connects, and again whenever the broker was away; one reads (paho's); one writes.
    A pause of the pipeline does not stop it: messages wait in the queue, or at the broker if that is full.
    """

    def __init__(self, spec: Mqtt, spool: Spool, clock: Callable[[], float] = time.time):
        require("paho", "paho-mqtt", "mqtt", "sources.Mqtt")
        self._spec = spec
        self._spool = spool
        self._clock = clock
        self._stopping = threading.Event()
        self._arrived = threading.Event()
        self._link: SubscriberLink | None = None
        self._left = Batch()  # of a connection that broke before they were written
        self._writing = False
        self._told = False
        self._threads = [
            threading.Thread(target=target, name=f"penstock-mqtt-{word}-{spool.name}", daemon=True)
            for word, target in (("in", self._stay_connected), ("write", self._write_batches))
        ]

    @property
    def schema(self) -> pa.Schema:
        value = pa.string() if self._spec.format == "text" else pa.binary()
        return pa.schema([("topic", pa.string()), ("value", value), ("arrival", pa.timestamp("us", "UTC"))])

    @property
    def connected(self) -> bool:
        """Whether the subscription stands."""
        link = self._link
        return link is not None and not link.ended.is_set()

    @property
    def done(self) -> bool:
        """Whether all that has come is in the spool."""
        link = self._link
        return not self._writing and (link is None or link.rows == 0)

    def start(self) -> None:
        self._session = KeptSession.of(self._spec, self._spool.path / "mqtt.json")
        for thread in self._threads:
            thread.start()

    def pause(self, paused: bool) -> None:
        """Nothing to do: what comes meanwhile is as safe in the queue as with the broker."""

    def stop(self) -> None:
        """Ends the connection and keeps the session: what is not durable yet comes again."""
        self._stopping.set()
        self._arrived.set()
        reader, writer = self._threads
        # A batch that is being written is still acknowledged, so that it does not come twice.
        for thread in (writer, reader):
            if thread.is_alive():
                thread.join(5)
            if (link := self._link) is not None:
                link.ended.set()

    def _stay_connected(self) -> None:
        pause = FIRST_RETRY_SECONDS
        while not self._stopping.is_set():
            link = SubscriberLink(self._spec, self._session, self._clock, self._arrived)
            trouble = link.connect()
            if not trouble:
                pause = FIRST_RETRY_SECONDS
                self._hold(link)
                trouble = link.trouble or "the connection was lost"
            link.drop()
            if not self._stopping.is_set():
                self._tell(trouble)
                self._stopping.wait(pause)
                pause = min(2 * pause, LAST_RETRY_SECONDS)

    def _hold(self, link: SubscriberLink) -> None:
        """Lets the link be written from as long as it lives."""
        where = f"{self._spec.host}:{self._spec.port}"
        if self._told:
            log.warning("MQTT broker %s is there again", where)
        self._told = False
        if link.session_present:
            # The broker sends again what was not acknowledged.
            self._left = Batch()
        elif self._session.was_there:
            self._append(self._left)
            log.warning(
                "MQTT broker %s must keep the session of %r, but has forgotten it: "
                "messages that came while this was not connected are lost",
                where,
                self._spool.name,
            )
        self._session = self._session.settled()
        self._link = link
        while not link.ended.wait(0.5):
            if self._stopping.is_set() and not self._threads[1].is_alive():
                break
        self._link = None
        self._left = link.take()

    def _tell(self, trouble: str) -> None:
        """Once until the broker is there again."""
        if not self._told:
            self._told = True
            log.warning(
                "%r needs MQTT broker %s:%d, but %s: it is tried again until it is there",
                self._spool.name,
                self._spec.host,
                self._spec.port,
                trouble,
            )

    def _write_batches(self) -> None:
        while not self._stopping.is_set():
            self._arrived.wait(0.5)
            self._arrived.clear()
            link = self._link
            if link is None or self._stopping.is_set():
                continue
            self._gather(link)
            self._writing = True
            batch = link.take()
            if self._append(batch):
                link.acknowledge(batch)
            self._writing = False

    def _gather(self, link: SubscriberLink) -> None:
        """Waits until a batch is due or full."""
        due = time.monotonic() + self._spec.batch_seconds
        full = min(self._spec.batch_rows, max(self._spec.in_flight // 2, 1))
        while link.rows < full and (left := due - time.monotonic()) > 0 and not self._stopping.is_set():
            self._arrived.wait(left)
            self._arrived.clear()

    def _append(self, batch: Batch) -> bool:
        """Whether the rows are in the spool; a full one, or a full disk, makes the broker wait."""
        if not batch.messages:
            return True
        table, arrivals = self._table(batch), Arrivals().merge([Arrivals(tuple(batch.bins))])
        told = False
        while not self._stopping.is_set():
            try:
                self._spool.append(table, producer=PRODUCER, arrivals=arrivals, timeout=FULL_WAIT_SECONDS)
                return True
            except SpoolClosed:
                return False
            except (SpoolFull, OSError) as trouble:
                if _never_fits(trouble) and len(batch.messages) > 1:
                    return all(map(self._append, batch.halves()))
                if not told:
                    log.warning("%r keeps its messages waiting: %s", self._spool.name, trouble)
                told = True
                self._stopping.wait(FULL_WAIT_SECONDS)
        return False

    def _table(self, batch: Batch) -> pa.Table:
        topics, payloads, _ = zip(*batch.messages, strict=True)
        times = np.array([at for at, _ in batch.bins]) * 1e6
        arrival = pa.array(np.repeat(times.astype("int64"), [int(rows) for _, rows in batch.bins]))
        value = pa.array(payloads, pa.binary())
        if self._spec.format == "text":
            value = _as_text(value)
        columns = [_as_text(pa.array(topics, pa.binary())), value, arrival.cast(self.schema[2].type)]
        return pa.Table.from_arrays(columns, schema=self.schema)


def _never_fits(trouble: Exception) -> bool:
    """Whether the rows are more than the spool may hold at all."""
    if not isinstance(trouble, SpoolFull) or isinstance(trouble, DiskFull):
        return False
    return trouble.wanted_bytes > trouble.limit_bytes


def _as_text(values: pa.Array) -> pa.Array:
    """Bytes as text; what is no UTF-8 gets U+FFFD in its place, so that no message can hold up the others."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode(errors="replace") for value in values.to_pylist()], pa.string())
