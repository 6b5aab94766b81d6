"""Direct turns over Kafka topics: batch jobs over exact ranges of offsets, committed by the journal."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import replace

from penstock.errors import PenstockError
from penstock.queues.journal import Journal
from penstock.queues.offsets import Offsets
from penstock.queues.segment import Slice
from penstock.scheduling.decisions import Grant
from penstock.scheduling.stage_view import StageView
from penstock.spark.direct import DirectStage, FramesBefore
from penstock.spark.inputs import QueueInputs, Slices
from penstock.spark.kafka.source import TopicSource, is_excused
from penstock.spark.stage_base import Destination, Place

TRIES = 3


class TopicStage(DirectStage):
    """A direct stage whose rows come from Kafka, which may go away, and may delete them unread."""

    def __init__(
        self,
        place: Place,
        destination: Destination,
        journal: Journal,
        inputs: QueueInputs,
        frames: FramesBefore,
        source: TopicSource,
    ):
        super().__init__(place, destination, journal, inputs, frames)
        self.source = source
        [self._queue] = inputs.consumers
        self._turn_lock = threading.Lock()
        self._in_turn = False
        self._in_a_row = 0  # turns that failed though the cluster was there
        self._gone: PenstockError | None = None

    @property
    def may_run(self) -> bool:
        """Also not while the cluster is away: its rows wait, and it takes no slot."""
        return self.source.ready and super().may_run

    @property
    def sources_away(self) -> Collection[str]:
        return () if self.source.ready else tuple(self.consumers)

    @property
    def read_up(self) -> bool:
        """Whether all that the topics have, looked at right now, was read and committed."""
        look = self.source.look()
        self.source.told(look)
        return look.there and self.source.cursor.caught_up

    def view(self, now: float) -> StageView | None:
        self.source.follow(self)
        return super().view(now)

    def turn(self, grant: Grant) -> None:
        with self._turn_lock:
            self._in_turn = True
        super().turn(grant)

    def run_or_give_back(self, grant: Grant, slices: Slices) -> None:
        try:
            self._run_or_excuse(grant, slices)
        finally:
            # Before the slots are free: the next turn may begin at once.
            with self._turn_lock:
                self._in_turn = False
                gone = self._gone
        if gone is not None:
            raise gone

    def _run_or_excuse(self, grant: Grant, slices: Slices) -> None:
        try:
            super().run_or_give_back(grant, slices)
            self._in_a_row = 0
        except Exception as error:
            look = self.source.look()
            self._in_a_row += look.there
            if self._in_a_row > TRIES or not is_excused(error, slices[self._queue], look):
                raise
            self.give_back(slices)
            self.source.told(look)

    def began(self, offsets: Offsets) -> None:
        """Durable before the first turn: "latest" must not mean something else after a restart."""
        positions = {**self.journal.entry.positions, self._queue: offsets}
        self.journal.write(replace(self.journal.entry, positions=positions))

    def came(self) -> None:
        self.place.dispatcher.changed(self)

    def lost(self, slices: tuple[Slice, ...]) -> None:
        """Durable at once, or with the turn that runs: after a restart more may be there than at the loss."""
        self.line.took({self._queue: slices}, self.now)
        with self._turn_lock:
            if not self._in_turn:
                self.began(self.source.cursor.position)

    def gone(self, error: PenstockError) -> None:
        """In a turn it is said at its end: until then its slots are taken."""
        with self._turn_lock:
            self._gone = error
            if self._in_turn:
                return
        self.fail(error)

    def stop(self) -> None:
        self.source.close()
        super().stop()
