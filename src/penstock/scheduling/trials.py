"""The first turns of a stage: they teach what its turns cost, and are not put off for long."""

from __future__ import annotations

from collections import Counter
from math import inf

from penstock.scheduling.laxity import PROBE_SECONDS
from penstock.scheduling.stage_view import StageView

TRIAL_SECONDS = 1.0
"""From the end of such a turn to the next, if it took no longer itself."""
MOST_TRIALS = 10
"""Of a stage: one that has not taught by then does not by more, as where its sink fails."""


class Trials:
    """When a stage whose costs are hardly known goes before all others.

    Its first turns are slow, as code is cold: while urgent stages fill all slots it would be as cold when
    they leave one at last. One such turn runs at a time, and then none for as long as it took, so that others
    keep half of a slot at least.
    """

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()
        self._running = ""
        self._began = self._next = -inf

    def wanted(self, view: StageView) -> bool:
        """Whether it may be given one; part of a block would teach nothing."""
        return not view.trusted and not view.short_of_block and self._given[view.name] < MOST_TRIALS

    def due(self, view: StageView) -> float:
        """When its next one is; never while another runs."""
        return inf if self._running else max(view.ready_since + PROBE_SECONDS, self._next)

    def begin(self, name: str, now: float) -> None:
        self._given[name] += 1
        self._running, self._began = name, now

    def end(self, name: str, now: float) -> None:
        """A turn has ended; nothing happens if it was no such turn."""
        if name == self._running:
            self._running = ""
            self._next = now + max(TRIAL_SECONDS, now - self._began)

    def forget(self, name: str) -> None:
        """The stage is gone."""
        self.end(name, self._began)
        del self._given[name]
