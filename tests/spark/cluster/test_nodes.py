"""Nodes leave in two steps, of which only the first can be undone."""

from __future__ import annotations

import pytest

from penstock.spark.cluster.nodes import NodeError, View


class Pool:
    """Keeps what it was told to hide."""

    hidden: frozenset[str] = frozenset()

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
