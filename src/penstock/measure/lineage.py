"""Which rows in which queue were derived from which input: the way from segments to inputs that are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.measure.inputs import InputFigures, InputMeter


class Origin(NamedTuple):
    """A segment, by what made it and a number that grows."""

    queue: str
    producer: str
    number: int


class Lineage:
    """Follows inputs through the queues of one pipeline; an input is a segment that came from outside.

    What a turn makes is derived from all that it took. So a window's result counts to the rows that brought
    it out, and rows that a stage remembers are done. Only segments of followed inputs are kept in mind. Not
    safe for threads.

    >>> lineage = Lineage(InputMeter(0.0), {"in": 1, "mid": 2})
    >>> frame, features = Origin("in", "camera", 0), Origin("mid", "p.sift", 0)
    >>> lineage.arrived(frame, 1.0)
    >>> lineage.passed("p.sift", [(frame, True)], features, 1.5)
    >>> lineage.passed("p.match", [(features, True)], None, 2.0)
    >>> lineage.passed("p.count", [(features, True)], None, 2.5)
    >>> lineage.look(10.0).mean_seconds, lineage.take_turns()["p.match"]
    (1.5, 1)
    """

    def __init__(self, meter: InputMeter, readers: Mapping[str, int]):
        """`readers`: how many stages read each queue."""
        self.meter = meter
        self._readers = readers
        self._newest: dict[tuple[str, str], int] = {}
        self._inputs: dict[Origin, frozenset[str]] = {}
        self._unread: dict[Origin, int] = {}
        self._turns: Counter[str] = Counter()

    def arrived(self, origin: Origin, at: float) -> None:
        """A segment came from outside; told by each stage that reads it, it counts once."""
        source = origin.queue, origin.producer
        if origin.number <= self._newest.get(source, -1):
            return
        self._newest[source] = origin.number
        name = f"{origin.queue}/{origin.producer}/{origin.number}"
        self.meter.came(name, at, self._readers.get(origin.queue, 0))
        self._derive(origin, frozenset((name,)))

    def passed(self, stage: str, took: Iterable[tuple[Origin, bool]], made: Origin | None, at: float) -> None:
        """A turn took rows of these segments, all that were left where that is said, and made a segment.

        To be told before anybody can take what it made.
        """
        left: Counter[str] = Counter()
        for origin, whole in took:
            for name in filter(self.meter.follows, self._inputs.get(origin, ())):
                left[name] += whole
            if whole and origin in self._unread:
                self._read(origin)
        for name, rows in left.items():
            self.meter.taken(name, rows, self._readers.get(made.queue, 0) if made else 0, at)
        self._turns[stage] += len(left)
        if made is not None:
            self._derive(made, frozenset(left))

    def look(self, now: float) -> InputFigures:
        """The figures since the last look; segments of inputs that were given up are forgotten."""
        figures = self.meter.look(now)
        for origin, inputs in list(self._inputs.items()):
            if not any(map(self.meter.follows, inputs)):
                del self._unread[origin], self._inputs[origin]
        return figures

    def take_turns(self) -> Counter[str]:
        """Turns of each stage that followed inputs had a part in, each counted, since the last call."""
        turns, self._turns = self._turns, Counter()
        return turns

    def _derive(self, origin: Origin, inputs: frozenset[str]) -> None:
        followed = frozenset(name for name in inputs if self.meter.follows(name))
        readers = self._readers.get(origin.queue, 0)
        if followed and readers:
            self._inputs[origin], self._unread[origin] = followed, readers

    def _read(self, origin: Origin) -> None:
        self._unread[origin] -= 1
        if not self._unread[origin]:
            del self._unread[origin], self._inputs[origin]
