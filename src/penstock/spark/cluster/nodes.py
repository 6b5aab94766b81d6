"""Nodes that come and go: what an actuator of a cluster offers, whoever decides."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from penstock.errors import PenstockError
from penstock.spark.cluster.executors import Executor, ReplicaUse, alias
from penstock.spark.cluster.pool import ClusterPool
from penstock.spark.cluster.standalone import StandaloneCluster, WorkerSize

log = logging.getLogger("penstock")
NodeState = Literal["starting", "up", "hidden", "leaving"]


class NodeError(PenstockError):
    """A node that is asked for what it cannot do."""

    def __init__(self, node: str, message: str):
        super().__init__(message)
        self.node = node


@dataclass(frozen=True)
class Node:
    """A place for tasks: its cores are slots while it is up, and not while it is hidden or leaves."""

    name: str
    region: str
    cores: int
    state: NodeState
    executors: tuple[str, ...] = ()


class Nodes(Protocol):
    """The actuator of a cluster.

    A node leaves in two steps, as Spark takes no decommissioning back: `hide` takes it from view, `show`
    undoes that, and `release` sends it away for good.
    """

    def nodes(self) -> tuple[Node, ...]:
        """All nodes there are, those that start and leave included."""
        ...

    def use(self) -> tuple[ReplicaUse, ...]:
        """What tasks took so far, by replica and executor."""
        ...

    def start(self, cores: int, region: str, name: str = "") -> str:
        """Asks for a node and returns its name at once; it is up some seconds later."""
        ...

    def hide(self, name: str) -> None:
        """Takes a node's cores out of the pool. Turns that run go on."""
        ...

    def show(self, name: str) -> None:
        """Puts a hidden node's cores back."""
        ...

    def release(self, name: str) -> None:
        """Lets a node end its tasks and leave; cannot be undone."""
        ...


class View:
    """Which nodes are hidden, and which are sent away: the part that all actuators share."""

    def __init__(self, pool: ClusterPool):
        self.pool = pool
        self.hidden: set[str] = set()
        self.leaving: set[str] = set()
        self._lock = threading.Lock()

    def hide(self, name: str) -> None:
        with self._lock:
            if name in self.leaving:
                raise NodeError(
                    name, f"node {name!r} must be up to be hidden, but leaves: nothing was changed"
                )
            self.hidden.add(name)
            self._apply()

    def show(self, name: str) -> None:
        with self._lock:
            if name in self.leaving:
                raise NodeError(
                    name,
                    f"node {name!r} must only be hidden to come back, but was sent away: "
                    "Spark takes no decommissioning back",
                )
            self.hidden.discard(name)
            self._apply()

    def leave(self, name: str) -> bool:
        """Whether it was not told so before."""
        with self._lock:
            told = name in self.leaving
            self.hidden.discard(name)
            self.leaving.add(name)
            self._apply()
            return not told

    def forget(self, gone: set[str]) -> None:
        """These nodes are no more; their names may come again."""
        with self._lock:
            self.hidden -= gone
            self.leaving -= gone
            self._apply()

    def state(self, name: str) -> NodeState:
        if name in self.leaving:
            return "leaving"
        return "hidden" if name in self.hidden else "up"

    def _apply(self) -> None:
        self.pool.hide(frozenset(self.hidden | self.leaving))


class StandaloneNodes:
    """The workers of a standalone cluster on this machine, each a process."""

    def __init__(self, cluster: StandaloneCluster, pool: ClusterPool, memory: str = "1g"):
        self._cluster = cluster
        self._pool = pool
        self._memory = memory
        self._view = View(pool)
        # Whoever sent them away may have died meanwhile.
        for worker in cluster.workers():
            if worker.leaving and worker.process is not None:
                self._let_go(worker.name)

    def nodes(self) -> tuple[Node, ...]:
        executors = _by_node(self._pool.watch.executors())
        found = []
        for worker in self._cluster.workers():
            ids = executors.get(worker.name, ())
            if worker.process is None:
                continue
            state = "leaving" if worker.leaving else self._view.state(worker.name)
            if not ids and state == "up":
                state = "starting"
            found.append(Node(worker.name, worker.region, worker.cores, state, ids))
        self._view.forget((self._view.hidden | self._view.leaving) - {each.name for each in found})
        return tuple(found)

    def use(self) -> tuple[ReplicaUse, ...]:
        return self._pool.watch.use()

    def start(self, cores: int, region: str, name: str = "") -> str:
        return self._cluster.add(WorkerSize(cores, region, self._memory), name)

    def hide(self, name: str) -> None:
        self._cluster.worker(name)
        self._view.hide(name)

    def show(self, name: str) -> None:
        self._cluster.worker(name)
        self._view.show(name)

    def release(self, name: str) -> None:
        self._cluster.worker(name)
        self._let_go(name)

    def _let_go(self, name: str) -> None:
        if self._view.leave(name):
            threading.Thread(target=self._send_away, args=(name,), name=f"penstock-{name}").start()

    def _send_away(self, name: str) -> None:
        try:
            if not self._cluster.remove(name):
                log.warning("node %r left before its tasks had ended: they run again elsewhere", name)
        except Exception as error:
            log.error("node %r could not be sent away: %s", name, error)


class AllocatedNodes:
    """Executors that a cluster manager allocates: on YARN and Kubernetes each of them is a node.

    Penstock sets their target number. Which machine one comes to, and how many cores it has, the manager and
    the application's own settings say.
    """

    def __init__(self, pool: ClusterPool, cores: int, region: str = "default"):
        self._pool = pool
        self._cores = cores
        self._region = region
        self._view = View(pool)
        self._target: int | None = None

    def nodes(self) -> tuple[Node, ...]:
        there = self._pool.watch.executors()
        up = tuple(
            Node(each.alias, self._region, each.cores, self._view.state(each.alias), (each.id,))
            for each in there
        )
        self._view.forget((self._view.hidden | self._view.leaving) - {each.name for each in up})
        awaited = max((self._target or 0) - len(there), 0)
        coming = tuple(
            Node(f"awaited-{n + 1}", self._region, self._cores, "starting") for n in range(awaited)
        )
        return up + coming

    def use(self) -> tuple[ReplicaUse, ...]:
        return tuple(replace(each, node=alias(each.executor)) for each in self._pool.watch.use())

    def start(self, cores: int, region: str, name: str = "") -> str:
        if (cores, region) != (self._cores, self._region):
            raise NodeError(
                name,
                f"a node must be as the application's executors are, {self._cores} cores in "
                f"{self._region!r}, got {cores} in {region!r}: nothing was started",
            )
        there = len(self._pool.watch.executors())
        self._aim(max(self._target or 0, there) + 1)
        return f"awaited-{(self._target or 0) - there}"

    def hide(self, name: str) -> None:
        self._named(name)
        self._view.hide(name)

    def show(self, name: str) -> None:
        self._view.show(name)

    def release(self, name: str) -> None:
        executor = self._named(name)
        if not self._view.leave(name):
            return
        # First the target: an executor that leaves above it is not replaced. Those on their way still come.
        self._aim(max(self._target or 0, len(self._pool.watch.executors())) - 1)
        if not self._pool.watch.send_away(executor.id):
            raise NodeError(name, f"node {name!r} must be registered to be sent away, but is not")

    def _aim(self, executors: int) -> None:
        if not self._pool.watch.want(executors):
            raise NodeError(
                "", f"the cluster manager must take a target of {executors} executors, but did not"
            )
        self._target = executors

    def _named(self, name: str) -> Executor:
        there = {each.alias: each for each in self._pool.watch.executors()}
        if name not in there:
            known = ", ".join(sorted(there)) or "none"
            raise NodeError(name, f"no executor {name!r} is registered, of: {known}")
        return there[name]


def _by_node(executors: tuple[Executor, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for each in executors:
        found[each.place] = (*found.get(each.place, ()), each.id)
    return found
