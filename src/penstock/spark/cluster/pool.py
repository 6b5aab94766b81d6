"""The slots of a cluster: what is registered now, reaches the state and is in view."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.queues.owner import OwnerLock
from penstock.scheduling.decisions import count
from penstock.spark.cluster.executors import Executor, ExecutorWatch
from penstock.spark.cluster.reach import Reach, UnreachableState, asked_for
from penstock.spark.cluster.settings import master_kind
from penstock.spark.dispatcher import Dispatcher
from penstock.spark.feeders import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock")
FIRST_SECONDS = 60.0
LOOK_SECONDS = 0.5
FIRST_TRIES = 10
MOST_TRIES = 20
"""An executor that is asked so often without an answer is trusted."""


class ClusterPool:
    """Keeps the number of slots at the cores of the executors, at most `most` of them.

    Executors that come later are asked for the state directory too: one that does not reach it is sent
    away, as its tasks would fail. Those of a hidden node count no more, though Spark may still use them.
    """

    def __init__(self, session: SparkSession, state: Path, most: int | None = None):
        self.watch = ExecutorWatch(session)
        self._session = session
        self._state = state
        self._most = most
        self._asked: set[str] = set()
        self._tries: Counter[str] = Counter()
        self._refused: set[str] = set()
        self._hidden: frozenset[str] = frozenset()
        self._slots = -1
        self.nodes = 0
        """That have executors which may be used, as of the last look."""
        self._closed = False
        self._lock = threading.Lock()

    def begin(self, first_seconds: float = FIRST_SECONDS) -> int:
        """The slots at the start; refuses a state directory that an executor does not reach."""
        wait_for(lambda: bool(self.watch.executors()), first_seconds, 0.1)
        executors, reach = self._first_answers()
        if reach.failed:
            raise UnreachableState(self._state, _places(reach.failed))
        self._asked = set(reach.answered)
        if not executors:
            log.warning(
                "no executor of %s is registered after %g s: nothing is granted until one is",
                self._session.sparkContext.master,
                first_seconds,
            )
        elif not reach.answered:
            log.warning(
                "no executor says whether it reaches %s, perhaps as others keep it busy: it is asked again",
                self._state,
            )
        self._slots = self._count(executors)
        return self._slots

    def _first_answers(self) -> tuple[tuple[Executor, ...], Reach]:
        """Asks until one has answered: Spark may give the task to another that has come in the meantime."""
        executors: tuple[Executor, ...] = ()
        reach = Reach()
        for _ in range(FIRST_TRIES):
            executors = self.watch.executors()
            reach = asked_for(self._session, self._state, executors)
            if reach.answered or not executors:
                break
            time.sleep(LOOK_SECONDS)
        return executors, reach

    @property
    def hidden(self) -> frozenset[str]:
        """The nodes, or executors by their alias, that are taken from view."""
        return self._hidden

    def hide(self, nodes: frozenset[str]) -> None:
        """Takes these nodes from view, and no others."""
        self._hidden = nodes

    def follow(self, dispatcher: Dispatcher) -> None:
        """Keeps a dispatcher's slots at what is there, until it is closed."""
        if self._closed:
            return
        try:
            self.look(dispatcher.resize)
        except Exception as error:
            if not self._closed:
                log.warning("the cluster could not be asked for its executors, and is asked again: %s", error)
        finally:
            dispatcher.at(dispatcher.clock() + LOOK_SECONDS, partial(self.follow, dispatcher))

    def look(self, resize: Callable[[int], None]) -> None:
        """Calls `resize` with the slots that are there now, if they are not those of the last look."""
        with self._lock:
            executors = self.watch.executors()
            self._ask_new(executors)
            slots = self._count(executors)
            if slots == self._slots:
                return
            before, self._slots = self._slots, slots
        self._tell(before, slots)
        resize(slots)

    def _ask_new(self, executors: tuple[Executor, ...]) -> None:
        fresh = [each for each in executors if each.id not in self._asked]
        if not fresh:
            return
        reach = asked_for(self._session, self._state, fresh)
        # A busy one may not have got its task: it is asked again.
        self._tries.update(each.id for each in fresh)
        self._asked |= reach.answered | {each for each, tries in self._tries.items() if tries >= MOST_TRIES}
        for each in reach.failed:
            self._refused.add(each.id)
            log.error("%s; it is sent away", UnreachableState(self._state, (each.place,)))
            self.watch.send_away(each.id)

    def check(self, folder: Path, what: str) -> None:
        """Refuses a folder that an executor does not reach."""
        if bad := asked_for(self._session, folder, self.watch.executors()).failed:
            raise UnreachableState(folder, _places(bad), what)

    def _count(self, executors: tuple[Executor, ...]) -> int:
        usable = [
            each
            for each in executors
            if each.id not in self._refused and not self._hidden & {each.place, each.alias}
        ]
        self.nodes = len({each.place for each in usable})
        cores = sum(each.cores for each in usable)
        return cores if self._most is None else min(cores, self._most)

    def _tell(self, before: int, slots: int) -> None:
        if slots == 0:
            log.warning("no executor is registered any more: nothing is granted until one is")
        else:
            log.info("the pool has %s now, %d before", count(slots, "slot"), before)

    def close(self) -> None:
        self._closed = True
        self.watch.close()


def _places(executors: tuple[Executor, ...]) -> tuple[str, ...]:
    return tuple(sorted({each.place for each in executors}))


def is_local(session: SparkSession) -> bool:
    """Whether its slots are threads of this process."""
    return master_kind(str(session.sparkContext.master)) == "local"


def first_slots(
    session: SparkSession, state: Path, owner: OwnerLock, wanted: int | None
) -> tuple[ClusterPool | None, int]:
    """The pool of a session's cluster, None where there is none, and the slots to begin with."""
    if is_local(session):
        return None, wanted or session.sparkContext.defaultParallelism
    pool = ClusterPool(session, state, wanted)
    try:
        return pool, pool.begin()
    except BaseException:
        pool.close()
        owner.release()
        raise
