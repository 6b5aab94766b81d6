"""Direct turns: a stage without state runs its plan over just the granted segments."""

from __future__ import annotations

from collections.abc import Callable

from penstock.queues.journal import Entry, Journal
from penstock.scheduling.decisions import Grant
from penstock.scheduling.stage_view import StageView
from penstock.spark.bookkeeping import Outcome
from penstock.spark.ends import EndAway, RemoteEnd, Written
from penstock.spark.granted_frames import GrantedFrames
from penstock.spark.inputs import QueueInputs, Slices, turn_input
from penstock.spark.results import Dating
from penstock.spark.stage_base import Destination, Place, StageBase, set_pool

FramesBefore = Callable[[str | None], GrantedFrames]
"""The frames of the operators before the one named, of all of them for None."""


def runs(frames: GrantedFrames, slices: Slices) -> bool:
    """Whether a job over these rows succeeds."""
    try:
        frames.over(slices).write.format("noop").mode("overwrite").save()
    except Exception:
        return False
    return True


class DirectStage(StageBase):
    """A stage whose turn is one batch job, committed by the replacement of its journal."""

    def __init__(
        self,
        place: Place,
        destination: Destination,
        journal: Journal,
        inputs: QueueInputs,
        frames: FramesBefore,
    ):
        super().__init__(place, destination, journal, "direct", inputs.consumers, None, inputs.sources)
        self.inputs = inputs
        self._frames_before = frames
        self._frames = frames(None)
        self._failed_slices: Slices = {}
        self._remote = destination.end if isinstance(destination.end, RemoteEnd) else None

    @property
    def end_is_away(self) -> bool:
        """Whether it writes to a process elsewhere that is not there now."""
        return self._remote is not None and not self._remote.ready

    @property
    def may_run(self) -> bool:
        """Also not while its end is away: its rows wait, and it takes no slot."""
        return super().may_run and not self.end_is_away

    def view(self, now: float) -> StageView | None:
        if self._remote is not None:
            # From the first look on: whoever is never scheduled never stops either.
            self._remote.watch(self._look_again)
        rows = self.count(now)
        since = self.inputs.ready_since
        if rows == 0 or since is None or not self.may_run:
            return None
        return self.base_view(rows, since, self.inputs.oldest_arrival or since)

    def _look_again(self) -> None:
        self.place.dispatcher.changed(self)

    def turn(self, grant: Grant) -> None:
        slices: Slices = {}
        try:
            slices = self.inputs.take(grant.rows, order=self.line.key_of)
            self.books.began(grant.at, self.inputs.rows_waiting)
            self.run_or_give_back(grant, slices)
        except BaseException as error:
            self._failed_slices = slices
            self.fail(error)
            return
        self.place.dispatcher.finished(self)

    def run_or_give_back(self, grant: Grant, slices: Slices) -> None:
        """Runs the turn; where what it needs went away, its rows wait again."""
        try:
            self._run(grant, slices)
        except EndAway:
            self.give_back(slices)

    def give_back(self, slices: Slices) -> None:
        """Nothing is committed. The stage is looked at again when what it needs is back."""
        self.books.gave_back(self.now, turn_input(slices).rows)
        self.inputs.give_back(slices)
        self.line.gave_back(slices, self.now)

    def _run(self, grant: Grant, slices: Slices) -> None:
        batch = self.journal.entry.batch + 1
        took = turn_input(slices)
        set_pool(self.place)
        context = self.line.took(slices, self.now)
        with self._frames.turn(slices, grant.slots) as rows:
            result = self.result(rows, Dating(took), context)
            written = self.write(result, batch)
        self._commit(batch, slices, written)
        visible_at = self.reveal(written, took, batch)
        self.inputs.release(slices)
        self.account(Outcome(batch, grant, took, took.rows, written.rows, visible_at), result.arrivals)

    def _commit(self, batch: int, slices: Slices, written: Written) -> None:
        positions = {**self.journal.entry.positions, **self.inputs.commit(slices)}
        progress = self.line.to_json()
        self.journal.write(Entry(batch, positions=positions, outputs=written.outputs, progress=progress))

    def rescale(self, slots: int) -> float:
        """Goes on with so many slots from the next turn on; 0.0, as no turn has to wait for that.

        The new plan is made beside the turns that run.
        """
        self._frames.prepare(min(slots, max(self.place.dispatcher.slots, 1)))
        self.go_by(slots)
        self.place.dispatcher.changed(self)
        return 0.0

    def runs_before(self, operator: str) -> bool:
        """Whether the operators before this one run on the rows of the turn that failed."""
        return runs(self._frames_before(operator), self._failed_slices)

    def stop(self) -> None:
        """A stage without a turn is at rest; an end elsewhere is left."""
        if self._remote is not None:
            self._remote.close()
