from __future__ import annotations

import pickle
import re

import pytest
from tests.pipeline.fakes import FakeFrame, FakeSink, FakeSource, match, step

from penstock.errors import PenstockError
from penstock.pipeline import Pipeline
from penstock.stages import OperatorError, build, cut


@pytest.fixture
def p():
    return Pipeline("p")


@pytest.fixture
def source(p):
    return p.source("in", FakeSource())


def built(pipeline, **settings):
    stage = cut(pipeline).stages[-1]
    return build(stage, {name: FakeFrame(name) for name in stage.inputs}, **settings).history


def test_operators_are_applied_in_order(p, source):
    source.operator("a", step("a")).operator("b", step("b")).sink("out", FakeSink())
    assert built(p) == "p.in.a.b"


def test_a_stage_without_operators_passes_its_input_on(p, source):
    source.sink("out", FakeSink())
    assert built(p) == "p.in"


def test_both_sides_of_a_join_get_their_own_chain(p, source):
    other = p.source("other", FakeSource())
    right = other.operator("b", step("b"))
    right.join("m", source.operator("a", step("a")), match).operator("c", step("c")).sink("out", FakeSink())
    assert built(p) == "(p.other.b x p.in.a).c"


def test_a_join_takes_a_queue_on_one_side_and_a_chain_on_the_other(p, source):
    source.join("m", p.source("other", FakeSource()).operator("b", step("b")), match).sink("out", FakeSink())
    assert built(p) == "(p.in x p.other.b)"


def test_a_stream_is_joined_with_itself(p, source):
    source.operator("a", step("a")).join("m", "a", match).sink("out", FakeSink())
    assert built(p) == "(p.in.a x p.in.a)"


def test_a_union_takes_all_its_streams_in_order_the_loop_too(p, source):
    back = p.loop("again", "n LONG")
    late = source.union("all", p.source("other", FakeSource()), back).operator("late", step("late"))
    late.feed(back)
    late.sink("out", FakeSink())
    stage = cut(p).stages[0]
    assert build(stage, {name: FakeFrame(name) for name in stage.inputs}).history == (
        "((p.in + p.other) + p.late).late"
    )


def test_what_flows_into_an_operator_can_be_built_alone(p, source):
    source.operator("a", step("a")).operator("b", step("b")).sink("out", FakeSink())
    assert built(p, before="b") == "p.in.a"
    assert built(p, before="a") == "p.in"
    with pytest.raises(PenstockError, match=r"^stage 'p.b' has no operator 'c', of \['a', 'b'\]$"):
        built(p, before="c")


def test_an_operator_that_raises_is_named(p, source):
    def broken(rows):
        raise LookupError("no column ts")

    source.operator("a", step("a")).operator("b", broken).sink("out", FakeSink())
    text = (
        "operator 'b' of pipeline 'p' raised LookupError: no column ts: "
        "the pipeline stops, its queues are kept"
    )
    with pytest.raises(OperatorError, match=f"^{re.escape(text)}$") as caught:
        built(p)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.pipeline, again.operator, str(again)) == ("p", "b", text)
    assert isinstance(caught.value.__cause__, LookupError)


def test_an_operator_that_returns_no_rows_at_all_is_named(p, source):
    source.operator("a", lambda rows: None).sink("out", FakeSink())
    text = (
        "operator 'a' of pipeline 'p' must return a DataFrame, got NoneType: "
        "the pipeline stops, its queues are kept"
    )
    with pytest.raises(OperatorError, match=f"^{re.escape(text)}$"):
        built(p)


def test_a_forgotten_input_is_named(p, source):
    source.sink("out", FakeSink())
    with pytest.raises(
        PenstockError, match=r"^stage 'p.out' must be given all its inputs, got none for 'p.in'$"
    ):
        build(cut(p).stages[0], {})
