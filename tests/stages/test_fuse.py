from __future__ import annotations

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, match, same

from penstock.pipeline import Pipeline, PipelineError, sinks
from penstock.stages import Feed, cut
from penstock.stages.stage import guarantee_at


@pytest.fixture
def p():
    return Pipeline("p")


@pytest.fixture
def source(p):
    return p.source("in", FakeSource())


@pytest.fixture
def native(p):
    return p.source("kafka", FakeSource(native=True))


def shape(pipeline):
    """Each stage as its inputs, operators, and end."""
    return {
        stage.name: (
            stage.inputs,
            tuple(operator.name for operator in stage.operators),
            stage.output or f"sink {stage.sink.name}",
        )
        for stage in cut(pipeline).stages
    }


def window(stream, name):
    return stream.window(name, on="ts", size="1s", aggregate="count(*) as n")


def test_a_chain_and_its_sink_are_one_stage(p, source):
    source.operator("a", same).operator("b", same).sink("out", FakeSink())
    assert shape(p) == {"p.b": (("p.in",), ("a", "b"), "sink out")}


def test_a_source_alone_with_its_sink_is_a_stage_without_operators(p, source):
    source.sink("out", FakeSink())
    assert shape(p) == {"p.out": (("p.in",), (), "sink out")}
    assert cut(p).stages[0].feeds == (Feed("p.in", None),)


def test_a_branch_is_a_queue_with_several_consumers(p, source):
    a = source.operator("a", same)
    a.operator("b", same).sink("one", FakeSink())
    a.operator("c", same).sink("two", FakeSink())
    assert shape(p) == {
        "p.a": (("p.in",), ("a",), "p.a"),
        "p.b": (("p.a",), ("b",), "sink one"),
        "p.c": (("p.a",), ("c",), "sink two"),
    }


def test_two_sinks_on_one_stream_are_a_queue_and_two_stages(p, source):
    a = source.operator("a", same)
    a.sink("one", FakeSink())
    a.sink("two", FakeSink())
    assert shape(p) == {
        "p.a": (("p.in",), ("a",), "p.a"),
        "p.one": (("p.a",), (), "sink one"),
        "p.two": (("p.a",), (), "sink two"),
    }


def test_queue_cuts_by_hand_even_before_a_sink(p, source):
    source.operator("a", same).queue().operator("b", same).queue().sink("out", FakeSink())
    assert shape(p) == {
        "p.a": (("p.in",), ("a",), "p.a"),
        "p.b": (("p.a",), ("b",), "p.b"),
        "p.out": (("p.b",), (), "sink out"),
    }


def test_an_operator_that_does_not_fuse_is_alone_but_for_its_sink(p, source):
    source.operator("a", same).operator("b", same, fuse=False).operator("c", same, fuse=False).sink(
        "out", FakeSink()
    )
    assert [operators for _, operators, _ in shape(p).values()] == [("a",), ("b",), ("c",)]
    assert shape(p)["p.c"] == (("p.b",), ("c",), "sink out")


def test_a_pipeline_that_does_not_fuse_has_a_stage_for_each_operator():
    p = Pipeline("p", fuse=False)
    p.source("kafka", FakeSource(native=True)).operator("a", same).operator("b", same).sink("out", FakeSink())
    assert shape(p) == {"p.a": (("p.kafka",), ("a",), "p.a"), "p.b": (("p.a",), ("b",), "sink out")}


def test_a_change_of_parallelism_is_a_cut(p, source):
    source.operator("a", same, parallelism=2).operator("b", same, parallelism=2).operator("c", same).sink(
        "out", FakeSink()
    )
    assert [(s.name, s.parallelism) for s in cut(p).stages] == [("p.b", 2), ("p.c", 1)]


def test_an_operator_with_dead_letters_ends_its_stage(p, source):
    source.operator("a", same).parse("parse", "v INT").sink("out", FakeSink())
    graph = cut(p)
    assert shape(p) == {
        "p.parse": (("p.in",), ("a", "parse"), "p.parse"),
        "p.out": (("p.parse",), (), "sink out"),
    }
    assert graph.stage("p.parse").dead_letters == {"parse": "p.parse.dead"}
    assert graph.queues["p.parse.dead"].producers == ("p.parse",)
    assert graph.queues["p.parse.dead"].dead_letters
    assert not graph.queues["p.parse"].dead_letters


def test_a_window_keeps_its_late_rows_and_its_settings_but_fuses_with_what_follows(p, source):
    window(source.operator("a", same), "w").operator("b", same).sink("out", FakeSink())
    (stage,) = cut(p).stages
    assert [operator.name for operator in stage.operators] == ["a", "w", "b"]
    assert stage.dead_letters == {"w": "p.w.dead"}
    assert stage.windows["w"].size_seconds == 1.0
    assert (stage.stateful, stage.turn_kind) == (True, "held")


def test_a_stage_has_one_state_at_most(p, source):
    window(window(source, "w"), "v").operator("c", same).operator("d", same, stateful=True).sink(
        "out", FakeSink()
    )
    assert [operators for _, operators, _ in shape(p).values()] == [("w",), ("v", "c"), ("d",)]


def test_a_union_of_two_states_reads_both_from_queues(p, source):
    other = p.source("other", FakeSource())
    window(source, "w").union("all", window(other, "v")).sink("out", FakeSink())
    assert shape(p)["p.all"] == (("p.w", "p.v"), ("all",), "sink out")


def test_a_union_of_one_state_fuses_with_it(p, source):
    other = p.source("other", FakeSource())
    window(source, "w").union("all", other).sink("out", FakeSink())
    assert shape(p) == {"p.all": (("p.in", "p.other"), ("w", "all"), "sink out")}


def test_chains_that_only_a_join_reads_are_fused_into_its_stage(p, source):
    other = p.source("other", FakeSource())
    left, right = source.operator("a", same), other.operator("b", same)
    left.join("m", right, match).sink("out", FakeSink())
    assert shape(p) == {"p.m": (("p.in", "p.other"), ("a", "b", "m"), "sink out")}
    assert cut(p).stages[0].feeds == (Feed("p.in", "a", 0), Feed("p.other", "b", 0))


def test_a_joins_inputs_say_which_side_they_feed(p, source):
    other = p.source("other", FakeSource())
    other.join("m", source, match).sink("out", FakeSink())
    assert cut(p).stages[0].feeds == (Feed("p.other", "m", 0), Feed("p.in", "m", 1))


def test_a_join_input_that_others_read_too_stays_a_queue(p, source):
    shared = source.operator("a", same)
    shared.join("m", p.source("other", FakeSource()), match).sink("out", FakeSink())
    shared.sink("raw", FakeSink())
    assert shape(p)["p.m"] == (("p.a", "p.other"), ("m",), "sink out")


def test_two_ways_from_one_queue_meet_in_one_stage_that_reads_it_once(p, source):
    source.operator("a", same).join("m", source.operator("b", same), match).sink("out", FakeSink())
    assert shape(p) == {"p.m": (("p.in",), ("a", "b", "m"), "sink out")}
    assert cut(p).queues["p.in"].consumers == ("p.m",)


def test_a_stream_joined_with_itself_is_read_once(p, native):
    native.operator("a", same).join("m", "a", match).sink("out", FakeSink())
    assert shape(p) == {"p.m": (("p.kafka",), ("a", "m"), "sink out")}


def test_a_native_source_is_fused_with_the_chain_below_it_and_has_no_queue(p, native):
    native.operator("a", same).sink("out", FakeSink())
    graph = cut(p)
    assert shape(p) == {"p.a": (("p.kafka",), ("a",), "sink out")}
    assert graph.stages[0].native.name == "kafka"
    assert graph.queues == {}


def test_a_native_source_goes_straight_to_its_sink(p, native):
    native.sink("out", FakeSink())
    assert shape(p) == {"p.out": (("p.kafka",), (), "sink out")}


def test_a_native_source_that_several_read_is_copied_to_a_queue_once(p, native):
    native.operator("a", same).sink("one", FakeSink())
    native.sink("two", FakeSink())
    graph = cut(p)
    assert shape(p) == {
        "p.kafka": (("p.kafka",), (), "p.kafka"),
        "p.a": (("p.kafka",), ("a",), "sink one"),
        "p.two": (("p.kafka",), (), "sink two"),
    }
    assert [stage.native is not None for stage in graph.stages] == [True, False, False]
    assert graph.queues["p.kafka"].consumers == ("p.a", "p.two")
    assert graph.queues["p.kafka"].source is None


@pytest.mark.parametrize("second_is_native", [True, False])
def test_a_native_source_beside_another_input_ends_in_a_queue(p, native, second_is_native):
    other = p.source("other", FakeSource(native=second_is_native))
    native.operator("a", same).union("all", other).sink("out", FakeSink())
    stages = shape(p)
    assert stages["p.a"] == (("p.kafka",), ("a",), "p.a")
    assert stages["p.all"] == (("p.a", "p.other"), ("all",), "sink out")
    assert ("p.other" in stages) == second_is_native


def looped(p, source):
    back = p.loop("again", "n LONG")
    retry = source.union("all", back).operator("try", same)
    retry.operator("failed", same).feed(back)
    retry.operator("done", same).sink("out", FakeSink(), latency="1s")


def test_a_loop_reads_the_queue_of_what_feeds_it(p, source):
    looped(p, source)
    graph = cut(p)
    assert shape(p) == {
        "p.try": (("p.in", "p.failed"), ("all", "try"), "p.try"),
        "p.failed": (("p.try",), ("failed",), "p.failed"),
        "p.done": (("p.try",), ("done",), "sink out"),
    }
    assert graph.stages[0].feeds == (Feed("p.in", "all", 0), Feed("p.failed", "all", 1, loop="again"))
    assert graph.queues["p.failed"].loop_schema == "n LONG"
    assert [s.name for s in graph.producers_of("p.failed")] == ["p.failed"]
    assert [s.name for s in graph.consumers_of("p.failed")] == ["p.try"]


def test_a_stage_whose_rows_leave_only_by_a_loop_has_the_target_and_depth_they_come_to(p, source):
    looped(p, source)
    assert {s.name: (s.latency_seconds, s.depth) for s in cut(p).stages} == {
        "p.try": (1.0, 1),
        "p.failed": (1.0, 2),
        "p.done": (1.0, 0),
    }


def test_a_stage_has_the_least_target_below_it_and_the_longest_way_to_go(p, source):
    a = source.operator("a", same)
    a.sink("soon", FakeSink(), latency="2s")
    b = a.operator("b", same).queue()
    b.sink("later", FakeSink(), latency="1s")
    b.sink("whenever", FakeSink())
    assert {s.name: (s.latency_seconds, s.depth) for s in cut(p).stages} == {
        "p.a": (1.0, 2),
        "p.soon": (2.0, 0),
        "p.b": (1.0, 1),
        "p.later": (1.0, 0),
        "p.whenever": (None, 0),
    }


def test_stages_come_after_what_they_read_however_they_were_declared(p, source):
    source.union("all", "late").sink("out", FakeSink())
    p.source("other", FakeSource()).operator("late", same, fuse=False)
    assert [stage.name for stage in cut(p).stages] == ["p.late", "p.all"]


def test_queues_tell_who_fills_and_who_reads_them(p, source):
    source.operator("a", same).queue().sink("out", FakeSink())
    graph = cut(p)
    assert list(graph.queues) == ["p.in", "p.a"]
    assert graph.queues["p.in"].source.name == "in"
    assert (graph.queues["p.in"].producers, graph.queues["p.in"].consumers) == ((), ("p.a",))
    assert (graph.queues["p.a"].producers, graph.queues["p.a"].consumers) == (("p.a",), ("p.out",))
    with pytest.raises(KeyError):
        graph.stage("p.out of nowhere")


def test_a_pipeline_with_mistakes_is_not_cut(p, source):
    with pytest.raises(PipelineError, match=r"^pipeline 'p': it has no sink: no row would ever leave it$"):
        cut(p)


def test_an_operator_with_dead_letters_does_not_share_the_stage_of_a_window(p, source):
    window(source, "w").operator("check", same, dead_letters=True).sink("out", FakeSink())
    assert shape(p) == {
        "p.w": (("p.in",), ("w",), "p.w"),
        "p.check": (("p.w",), ("check",), "p.check"),
        "p.out": (("p.check",), (), "sink out"),
    }


def test_what_is_called_at_every_turn_shares_a_stage_with_what_is_before_it_and_with_its_sink(p, source):
    source.operator("a", same).each_turn("t", same, schema="n LONG").sink("out", FakeSink())
    assert shape(p) == {"p.t": (("p.in",), ("a", "t"), "sink out")}
    assert cut(p).stages[0].at_turn.name == "t"


def test_a_queue_stands_behind_what_is_called_at_every_turn(p, source):
    source.each_turn("t", same, schema="n LONG").operator("b", same).sink("out", FakeSink())
    assert shape(p) == {"p.t": (("p.in",), ("t",), "p.t"), "p.b": (("p.t",), ("b",), "sink out")}


def test_a_queue_stands_between_state_or_a_native_source_and_what_is_called_at_every_turn(p, source, native):
    window(source, "w").each_turn("t", same, schema="n LONG").sink("one", FakeSink())
    native.operator("a", same).each_turn("u", same, schema="n LONG").sink("two", FakeSink())
    assert shape(p) == {
        "p.w": (("p.in",), ("w",), "p.w"),
        "p.t": (("p.w",), ("t",), "sink one"),
        "p.a": (("p.kafka",), ("a",), "p.a"),
        "p.u": (("p.a",), ("u",), "sink two"),
    }


class AwaySink(FakeSink):
    may_be_away = True


def test_a_queue_stands_between_state_or_a_native_source_and_a_sink_that_may_be_away(p, source, native):
    window(source, "w").operator("a", same).sink("one", AwaySink())
    native.sink("two", AwaySink())
    source.operator("b", same).sink("three", AwaySink())
    assert shape(p) == {
        "p.a": (("p.in",), ("w", "a"), "p.a"),
        "p.one": (("p.a",), (), "sink one"),
        "p.kafka": (("p.kafka",), (), "p.kafka"),
        "p.two": (("p.kafka",), (), "sink two"),
        "p.b": (("p.in",), ("b",), "sink three"),
    }


def test_a_function_that_stands_in_for_such_a_sink_is_cut_off_alike(p, source):
    window(source, "w").sink("one", sinks.Callback(lambda rows, turn: None, may_be_away=True))
    window(source, "v").sink("two", sinks.Callback(lambda rows, turn: None))
    assert shape(p) == {
        "p.w": (("p.in",), ("w",), "p.w"),
        "p.one": (("p.w",), (), "sink one"),
        "p.v": (("p.in",), ("v",), "sink two"),
    }


class ByTurns(FakeSource):
    by_turns = True


def test_a_source_read_by_turns_goes_with_a_sink_that_may_be_away_and_not_with_state(p):
    records = p.source("records", ByTurns(native=True))
    other = p.source("other", ByTurns(native=True))
    records.operator("a", same).sink("one", AwaySink())
    window(other.operator("b", same), "w").sink("two", FakeSink())
    assert shape(p) == {
        "p.a": (("p.records",), ("a",), "sink one"),
        "p.b": (("p.other",), ("b",), "p.b"),
        "p.w": (("p.b",), ("w",), "sink two"),
    }
    assert [stage.native is not None for stage in cut(p).stages] == [True, True, False]


def test_what_is_called_at_every_turn_goes_with_a_source_read_by_turns(p):
    records = p.source("records", ByTurns(native=True))
    records.each_turn("fit", same, schema="x INT").sink("out", FakeSink())
    assert shape(p) == {"p.fit": (("p.records",), ("fit",), "sink out")}


TOPIC = sinks.Kafka("127.0.0.1:9092", "handed-on")


def test_a_topic_stands_between_two_stages_and_shares_their_turns(p, source):
    source.operator("a", same).queue(through=TOPIC).operator("b", same, parallelism=2).sink("out", FakeSink())
    assert shape(p) == {
        "p.a-out": (("p.in",), ("a", "a-out"), "p.a-out"),
        "p.b": (("p.a-out",), ("a-in", "b"), "sink out"),
    }
    graph = cut(p)
    assert {name: queue.topic for name, queue in graph.queues.items()} == {"p.in": None, "p.a-out": TOPIC}
    assert [stage.name for stage in graph.below(graph.stage("p.a-out"))] == ["p.b"]


def test_state_and_other_inputs_stand_behind_a_queue_of_their_own_at_both_sides_of_a_topic(p, source):
    counts = window(source, "w").queue(through=TOPIC)
    window(counts, "again").union("all", source).sink("out", FakeSink())
    assert shape(p) == {
        "p.w": (("p.in",), ("w",), "p.w"),
        "p.w-out": (("p.w",), ("w-out",), "p.w-out"),
        "p.w-in": (("p.w-out",), ("w-in",), "p.w-in"),
        "p.all": (("p.w-in", "p.in"), ("again", "all"), "sink out"),
    }


def test_a_target_below_a_topic_counts_above_it(p, source):
    source.operator("a", same).queue(through=TOPIC).sink("out", FakeSink(), latency="2s")
    assert [stage.latency_seconds for stage in cut(p).stages] == [2.0, 2.0]


def test_rows_that_went_through_a_topic_reach_no_sink_exactly_once(p, source):
    a = source.operator("a", same)
    a.queue(through=TOPIC).operator("b", same).queue().sink("out", FakeSink())
    a.sink("other", FakeSink())
    graph = cut(p)
    ends = {stage.sink.name: guarantee_at(graph, stage) for stage in graph.stages if stage.sink}
    assert ends == {"out": "at least once", "other": "exactly once"}


@pytest.mark.parametrize(
    ("topic", "mistake"),
    [
        ("handed-on", "it must go through a sinks.Kafka, got str: nothing could be read from it"),
        (
            sinks.Kafka("127.0.0.1:9092"),
            "its topic must be named, got none: what one stage writes another could not find",
        ),
    ],
)
def test_a_queue_goes_through_a_topic_that_has_a_name(p, source, topic, mistake):
    with pytest.raises(PipelineError, match=f"queue 'in': {mistake}"):
        source.queue(through=topic)
