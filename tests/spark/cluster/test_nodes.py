"""Nodes leave in two steps, of which only the first can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.cluster.daemon import Daemon
from penstock.spark.cluster.executors import Executor
from penstock.spark.cluster.nodes import AllocatedNodes, NodeError, StandaloneNodes, View
from penstock.spark.cluster.reach import UnreachableState
from penstock.spark.feeders import wait_for


class Watch:
    """A cluster manager that gives an executor when it is told to."""

    def __init__(self, there: int):
        self.ids = [str(number) for number in range(there)]
        self.target = there
        self.taken = True

    def executors(self) -> tuple[Executor, ...]:
        return tuple(Executor(each, 1, "here") for each in self.ids)

    def want(self, executors: int) -> bool:
        self.target = executors
        return self.taken

    def send_away(self, executor: str) -> bool:
        self.ids.remove(executor)
        return True


class Pool:
    """Keeps what it was told to hide."""

    hidden: frozenset[str] = frozenset()

    def __init__(self, there: int = 0):
        self.watch = Watch(there)

    def hide(self, nodes: frozenset[str]) -> None:
        self.hidden = nodes


@pytest.fixture
def pool() -> Pool:
    return Pool()


@pytest.fixture
def view(pool: Pool) -> View:
    return View(pool)  # type: ignore[arg-type]


def test_a_hidden_node_comes_back(view: View, pool: Pool) -> None:
    view.hide("a")
    assert (view.state("a"), pool.hidden) == ("hidden", {"a"})
    view.show("a")
    assert (view.state("a"), pool.hidden) == ("up", frozenset())


def test_a_node_that_was_sent_away_stays_out_of_the_pool_until_it_is_gone(view: View, pool: Pool) -> None:
    view.hide("a")
    assert view.leave("a")
    assert (view.state("a"), pool.hidden) == ("leaving", {"a"})
    assert not view.leave("a")
    view.forget({"a"})
    assert (view.state("a"), pool.hidden) == ("up", frozenset())


def test_sending_away_cannot_be_undone(view: View) -> None:
    view.leave("a")
    with pytest.raises(NodeError) as refused:
        view.show("a")
    assert str(refused.value) == (
        "node 'a' must only be hidden to come back, but was sent away: Spark takes no decommissioning back"
    )
    with pytest.raises(NodeError, match="node 'a' must be up to be hidden, but leaves"):
        view.hide("a")


def test_releasing_a_node_forgets_none_that_is_on_its_way() -> None:
    pool = Pool(3)
    nodes = AllocatedNodes(pool, cores=1)  # type: ignore[arg-type]
    assert [nodes.start(1, "default"), nodes.start(1, "default")] == ["awaited-1", "awaited-2"]
    nodes.release("executor-0")
    assert pool.watch.target == 4
    assert [(each.name, each.state) for each in nodes.nodes()] == [
        ("executor-1", "up"),
        ("executor-2", "up"),
        ("awaited-1", "starting"),
        ("awaited-2", "starting"),
    ]
    # Names that are no more are forgotten: they may come again.
    assert pool.hidden == frozenset()


def test_a_node_that_is_told_twice_to_go_lowers_the_target_once() -> None:
    class Slow(Watch):
        def send_away(self, executor: str) -> bool:
            return True

    pool = Pool(3)
    pool.watch = Slow(3)
    nodes = AllocatedNodes(pool, cores=1)  # type: ignore[arg-type]
    nodes.release("executor-0")
    nodes.release("executor-0")
    assert pool.watch.target == 2


def test_a_worker_whose_driver_died_while_it_drained_is_sent_away_by_the_next() -> None:
    class Draining(Daemon):
        process = "a process"  # type: ignore[assignment]

    class Workers:
        def __init__(self) -> None:
            self.removed: list[str] = []

        def workers(self) -> list[Daemon]:
            names = (("a", True), ("b", False))
            return [Draining(name, "worker", 1, 0.0, leaving=leaving) for name, leaving in names]

        def remove(self, name: str) -> bool:
            self.removed.append(name)
            return True

    cluster, pool = Workers(), Pool()
    StandaloneNodes(cluster, pool)  # type: ignore[arg-type]
    assert wait_for(lambda: cluster.removed == ["a"], 10.0)
    assert pool.hidden == {"a"}


def test_a_queue_out_of_reach_is_told_as_what_it_is() -> None:
    refused = UnreachableState(Path("/local/in"), ("worker-1",), "the spool of source 'readings'")
    assert str(refused) == (
        "the spool of source 'readings' must be one that every worker reads and writes, got '/local/in', "
        "which worker-1 cannot: its files would be missing there. Name a shared or mounted directory under "
        "the same path on all of them"
    )
