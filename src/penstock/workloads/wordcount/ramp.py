"""A source whose rate grows and shrinks, linearly: 5 to 550 to 5 tuples/s in E2DF's evaluation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.queues.segment import Arrivals
from penstock.queues.spool import Spool
from penstock.workloads.wordcount.sentences import Sentences

TICK_SECONDS = 0.1


@dataclass(frozen=True)
class Ramp:
    """From `low` up to `peak` and back, in `seconds`.

    >>> ramp = Ramp(seconds=100.0)
    >>> ramp.rate(0.0), ramp.rate(50.0), ramp.rate(75.0), ramp.sentences(100.0)
    (5.0, 550.0, 277.5, 27750)
    """

    low: float = 5.0
    peak: float = 550.0
    seconds: float = 3600.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.low <= self.peak or not self.seconds > 0.0:
            raise PenstockError(
                f"a ramp must go from 0 or more up to its peak in a positive time, got {self.low} to "
                f"{self.peak} in {self.seconds} s: no rate could be told"
            )

    def rate(self, at: float) -> float:
        """Sentences a second, `at` seconds after the beginning."""
        return self.low + (self.peak - self.low) * (1.0 - abs(2.0 * at / self.seconds - 1.0))

    def sentences(self, at: float) -> int:
        """How many have come by then."""
        half, passed = self.seconds / 2.0, min(max(at, 0.0), self.seconds)
        grown, shrunk = min(passed, half), max(passed - half, 0.0)
        slope = (self.peak - self.low) / half
        up = self.low * grown + slope * grown * grown / 2.0
        down = self.peak * shrunk - slope * shrunk * shrunk / 2.0
        return int(up + down + 1e-6)


class RampFeeder:
    """A thread that appends the sentences that are due. They arrive when they are due, however late it is."""

    def __init__(
        self,
        spool: Spool,
        sentences: Sentences,
        ramp: Ramp,
        clock: Callable[[], float] = time.time,
        first: int = 0,
        tick_seconds: float = TICK_SECONDS,
    ) -> None:
        """`first` is the number of its first sentence, where another feeder has sent those before."""
        self._spool, self._sentences, self._ramp, self._clock = spool, sentences, ramp, clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-wordcount", daemon=True)
        self._tick_seconds = tick_seconds
        self.first = self.sent = first
        """Sentences so far: numbers first to sent - 1."""
        self.began = 0.0
        """When it was started, by its clock."""
        self.done = False
        self.error: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends early if it has not sent all."""
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        tick_seconds = self._tick_seconds
        ticks = round(self._ramp.seconds / tick_seconds)
        began = self.began = self._clock()
        try:
            for tick in range(1, ticks + 1):
                due = began + tick * tick_seconds
                self._stopping.wait(max(due - self._clock(), 0.0))
                if self._stopping.is_set():
                    return
                self._send(self.first + self._ramp.sentences(tick * tick_seconds), due)
            self.done = True
        except BaseException as error:
            self.error = error

    def _send(self, upto: int, due: float) -> None:
        table = self._sentences.table(self.sent, upto - self.sent)
        if table.num_rows:
            self._spool.append(table, producer="sentences", arrivals=Arrivals.at(due, table.num_rows))
        self.sent = upto
