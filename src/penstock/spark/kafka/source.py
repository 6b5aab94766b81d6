"""The rows of Kafka topics for the direct turns of a stage."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from penstock.errors import PenstockError
from penstock.pipeline.kafka import client_settings
from penstock.pipeline.sources import Kafka
from penstock.queues.offsets import Offsets, RecordsGone
from penstock.queues.ranges import ranges_of, shared
from penstock.queues.segment import Slice
from penstock.queues.topic import Came, Loss, TopicCursor, TopicRules, not_known
from penstock.spark.granted_frames import GrantedSource
from penstock.spark.jvm import frame_of, java_session, jvm
from penstock.spark.kafka.connector import connector, java_map
from penstock.spark.kafka.watch import BrokerWatch, Look, topics_client, unwatch, watch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("penstock")

POLL_SECONDS = 10.0
"""How long a task waits for a record that must be there: a broker may restart meanwhile."""
READING = {
    "allow.auto.create.topics": "false",
    # The connector asks for both ends of a partition after every poll: by default after 500 records.
    "max.poll.records": "10000",
    # A turn reads what is there. At the end of a topic those questions would wait behind a fetch for more.
    "fetch.max.wait.ms": "20",
}
"""How records are read; options of the user's go before it."""
ERRORS = "org.apache.kafka.common.errors"
PASSING = (
    "Cannot fetch record",
    *(f"{ERRORS}.{name}" for name in ("TimeoutException", "DisconnectException", "NetworkException")),
    *(f"{ERRORS}.{name}" for name in ("NotLeaderOrFollowerException", "LeaderNotAvailableException")),
)
"""What a turn that met a broker on its way out or in says; all else is an error of its own."""


class KafkaRefused(PenstockError):
    """A cluster that is there and does not let us in."""

    def __init__(self, stage: str, servers: str, reason: str):
        super().__init__(
            f"stage {stage!r} must be let in by Kafka at {servers}, which says: {reason}: the pipeline stops"
        )


class Follower(Protocol):
    """The stage that reads the topics; called from a thread of the watch."""

    @property
    def now(self) -> float: ...

    def began(self, offsets: Offsets) -> None:
        """These are the offsets at which it begins, having had none."""
        ...

    def came(self) -> None:
        """Rows have come, or the cluster has gone or is back."""
        ...

    def lost(self, slices: tuple[Slice, ...]) -> None:
        """These rows waited, and will not be read."""
        ...

    def gone(self, error: PenstockError) -> None:
        """It cannot go on."""
        ...


class TopicSource:
    """Follows the topics of a source: tells a stage's cursor what has come, and the stage that it has."""

    reads = True

    def __init__(
        self,
        spec: Kafka,
        stage: str,
        session: SparkSession,
        offsets: Offsets,
        came: Came = not_known,
    ):
        self.spec = spec
        self.topics = spec.names
        self.cursor = TopicCursor(stage, TopicRules(spec.start, spec.on_lost), offsets, came)
        self._stage = stage
        self._session = session
        self._watch: BrokerWatch | None = None
        self._closed = False
        self._follower: Follower | None = None
        self._there = False
        self._number = 0
        self._telling = threading.Lock()
        self._missing: set[str] = set()
        self._fresh = not offsets.next
        topics_client(session, spec.servers, spec.options)  # settings that cannot work are refused here

    @property
    def ready(self) -> bool:
        """Whether the cluster is there; not before `follow` was called."""
        return self._there

    def follow(self, follower: Follower) -> None:
        """Begins to look; one that was closed looks no more."""
        if self._watch is None and not self._closed:
            self._follower = follower
            self._watch = watch(self._session, self.spec.servers, self.spec.options, self)

    def told(self, look: Look) -> None:
        """What a look found; one that comes after a later one says nothing new."""
        if self._follower is None or self._closed:
            return
        gone: PenstockError | None = None
        with self._telling:
            before, offered = self._there, self.cursor.rows_offered
            if look.there and look.number <= self._number:
                return
            if look.there:
                gone = self._take_in(look, self._follower)
            # Only now may it run: what it begins with is durable.
            self._there, self._number = look.there, max(look.number, self._number)
            changed = self._there != before or self.cursor.rows_offered != offered
        if look.refused:
            gone = KafkaRefused(self._stage, self.spec.servers, look.refused)
        # Not under the lock: that stops the pipeline, whose own may be held by one who waits for this one.
        if gone is not None:
            self._follower.gone(gone)
        if changed:
            self._follower.came()

    def _take_in(self, look: Look, follower: Follower) -> PenstockError | None:
        """Tells the cursor; why the stage cannot go on, if it cannot."""
        self._tell_missing(look)
        try:
            losses = self.cursor.seen(look.reaches, follower.now)
        except RecordsGone as error:
            return error
        if self._fresh and look.reaches:
            follower.began(self.cursor.position)
            self._fresh = False
        for loss in losses:
            self._tell_loss(loss)
            follower.lost(loss.dropped)
        return None

    def _tell_missing(self, look: Look) -> None:
        missing = set(self.topics) - {name.split("/")[0] for name in look.reaches}
        for topic in sorted(missing - self._missing):
            log.warning("stage %r reads topic %r, which is not there: it is waited for", self._stage, topic)
        self._missing = missing

    def _tell_loss(self, loss: Loss) -> None:
        log.error(
            "stage %r lost %d rows of partition %s, which were deleted before they were read: "
            "it goes on at offset %d, as on_lost is %r",
            *(self._stage, loss.rows, loss.partition, loss.went_on_at, self.spec.on_lost),
        )

    def look(self) -> Look:
        """How things stand right now."""
        return Look(away="nobody looks") if self._watch is None else self._watch.look(self.topics)

    def close(self) -> None:
        """It is needed no more."""
        self._closed = True
        if self._watch is not None:
            unwatch(self._watch, self)
            self._watch = None


def is_excused(error: BaseException, slices: Iterable[Slice], look: Look) -> bool:
    """Whether a turn over these rows failed because of the cluster, so that they are to be given back."""
    if not look.there or any(mark in str(error) for mark in PASSING):
        return True
    firsts = {name: reach.first for name, reach in look.reaches.items()}
    return any(_begins(piece) < firsts.get(piece.segment.producer, 0) for piece in slices)


def _begins(piece: Slice) -> int:
    """The first offset of a slice."""
    return int(piece.paths[0].split(" ")[2])


def granted_offsets(session: SparkSession, spec: Kafka) -> GrantedSource:
    """Over ranges of offsets of the topics."""
    settings = {**READING, **client_settings(spec.servers, spec.options)}
    group = f"penstock-{uuid.uuid4().hex[:12]}"
    made = connector(session).GrantedOffsets(
        java_map(session, settings), group, spec.headers, round(POLL_SECONDS * 1000)
    )
    of_rows = jvm(session).org.apache.spark.sql.classic.Dataset.ofRows
    frame = frame_of(of_rows(java_session(session), made.relation()), session)
    return GrantedSource(made, frame, _shared_lines)


def _shared_lines(slices: tuple[Slice, ...], slots: int) -> str:
    """Offsets can be divided anywhere: no row has to go from one task to another."""
    return "\n".join(each.line for each in shared(ranges_of(slices), slots))


def stream_of(session: SparkSession, spec: Kafka) -> DataFrame:
    """The same rows as a stream, which is only looked at: its plan tells whether a stage has state."""
    connector(session)
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", spec.servers)
    reader = reader.option("subscribe", ",".join(spec.names)).option("includeHeaders", spec.headers)
    return reader.load()
