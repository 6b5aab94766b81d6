from __future__ import annotations

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, match, same

from penstock.pipeline import Pipeline, PipelineError

FLOOR = {"direct": 0.035, "held": 0.085}


def mistakes(pipeline):
    with pytest.raises(PipelineError) as caught:
        pipeline.check()
    return list(caught.value.mistakes)


@pytest.fixture
def alerts():
    return Pipeline("alerts")


@pytest.fixture
def readings(alerts):
    return alerts.source("readings", FakeSource())


def test_a_sound_pipeline_has_neither_mistakes_nor_warnings(alerts, readings):
    readings.operator("clean", same).sink("out", FakeSink(), latency="1s")
    assert alerts.check() == ()
    assert alerts.check(FLOOR) == ()


def test_all_mistakes_come_in_one_message(alerts, readings):
    alerts.loop("again", "n LONG")
    readings.join("m", "prizes", match).sink("out", FakeSink())
    alerts.source("prices", FakeSource())
    with pytest.raises(PipelineError) as caught:
        alerts.check()
    assert str(caught.value) == (
        "pipeline 'alerts' has 4 mistakes:\n"
        "  - join 'm': it reads 'prizes', which is not declared: did you mean 'prices'?\n"
        "  - loop 'again': it is never fed: call feed() on the stream whose rows come back\n"
        "  - loop 'again': it leads to no sink: its rows would be lost\n"
        "  - source 'prices': it leads to no sink: its rows would be lost"
    )


def test_one_mistake_is_a_message_of_one_line(alerts, readings):
    readings.sink("out", FakeSink())
    readings.operator("clean", same)
    with pytest.raises(PipelineError) as caught:
        alerts.check()
    assert str(caught.value) == (
        "pipeline 'alerts': operator 'clean': it leads to no sink: its rows would be lost"
    )


def test_an_empty_pipeline_has_no_ends(alerts):
    assert mistakes(alerts) == [
        "it has no source: no row would ever come in",
        "it has no sink: no row would ever leave it",
    ]


def test_a_name_may_be_used_before_it_is_declared(alerts, readings):
    readings.union("all", "prices").sink("out", FakeSink())
    alerts.source("prices", FakeSource())
    assert alerts.check() == ()


def test_a_name_like_no_other_is_reported_without_a_guess(alerts, readings):
    readings.union("all", "zzz").sink("out", FakeSink())
    assert mistakes(alerts) == ["union 'all': it reads 'zzz', which is not declared"]


def test_a_sink_cannot_be_read(alerts, readings):
    readings.sink("out", FakeSink())
    readings.union("all", "out").sink("more", FakeSink())
    assert mistakes(alerts) == ["union 'all': it reads 'out', which is a sink: rows end there"]


def test_operators_that_no_source_leads_to_are_found(alerts, readings):
    readings.sink("out", FakeSink())
    back = alerts.loop("again", "n LONG")
    island = back.operator("island", same)
    island.feed(back)
    island.sink("never", FakeSink())
    assert mistakes(alerts) == [
        "operator 'island': no source leads to it: no row would ever reach it",
        "sink 'never': no source leads to it: no row would ever reach it",
    ]


def test_a_circle_by_name_needs_a_loop(alerts, readings):
    readings.union("all", "late").operator("late", same).sink("out", FakeSink())
    assert mistakes(alerts) == [
        "'all', 'late' read one another: declare a loop(), union it in, and feed() it"
    ]


def test_a_loop_fed_from_elsewhere_is_no_loop(alerts, readings):
    readings.union("all", alerts.loop("again", "n LONG")).sink("out", FakeSink())
    readings.operator("clean", same).feed("again")
    assert mistakes(alerts) == [
        "loop 'again': it is fed by 'clean', which is not below it: read 'clean' itself"
    ]


def test_feeding_a_name_that_is_no_loop_is_found(alerts, readings):
    clean = readings.operator("clean", same)
    clean.feed("agian")
    clean.feed("more")
    clean.operator("more", same).sink("out", FakeSink())
    alerts.loop("again", "n LONG").sink("back", FakeSink())
    assert mistakes(alerts)[:2] == [
        "operator 'clean': it feeds 'agian', which is not declared: did you mean 'again'?",
        "operator 'clean': it feeds 'more', which is of kind 'operator': declare a loop() instead",
    ]


def looped(alerts, readings, add):
    back = alerts.loop("again", "n LONG")
    inside = add(readings.union("all", back))
    inside.feed(back)
    inside.sink("out", FakeSink())
    return alerts


def test_state_in_a_loop_without_a_watermark_is_refused(alerts, readings):
    looped(alerts, readings, lambda s: s.operator("dedupe", same, stateful=True))
    assert mistakes(alerts) == [
        "operator 'dedupe': state inside a loop must have a watermark, got none: it would grow for ever "
        "(set one in its function, and name its column with watermark=; or say forgets=True "
        "where it forgets by itself)"
    ]


def test_a_join_in_a_loop_is_state_too(alerts, readings):
    looped(alerts, readings, lambda s: s.join("m", readings, match))
    assert len(mistakes(alerts)) == 1


@pytest.mark.parametrize(
    "add",
    [
        lambda s: s.operator("dedupe", same, stateful=True, watermark="ts"),
        lambda s: s.window("w", on="ts", size="1s", aggregate="count(*) as n"),
        lambda s: s.operator("clean", same),
    ],
)
def test_a_loop_with_a_watermark_or_without_state_is_sound(alerts, readings, add):
    assert looped(alerts, readings, add).check() == ()


def test_state_beside_a_loop_needs_no_watermark(alerts, readings):
    pipeline = looped(
        alerts, readings.operator("first", same, stateful=True), lambda s: s.operator("x", same)
    )
    pipeline.stream("x").operator("last", same, stateful=True).sink("end", FakeSink())
    assert pipeline.check() == ()


def test_a_target_below_the_floor_is_a_warning_with_the_floor(alerts, readings):
    parsed = readings.parse("parse", "ts TIMESTAMP")
    windowed = parsed.window("per second", on="ts", size="1s", aggregate="count(*) as n")
    windowed.sink("out", FakeSink(), latency="119ms")
    assert alerts.check(FLOOR) == (
        "pipeline 'alerts': sink 'out': its target of 119 ms is below the floor of 120 ms "
        "(alerts.parse 35 ms, alerts.per second 85 ms): rows will be late even when nothing else runs",
    )


def test_a_target_at_the_floor_and_no_target_at_all_are_fine(alerts, readings):
    clean = readings.operator("clean", same).queue()
    clean.sink("at it", FakeSink(), latency=0.07)
    clean.sink("none", FakeSink())
    assert alerts.check(FLOOR) == ()


def test_the_floor_is_that_of_the_longest_path_with_loops_passed_once(alerts, readings):
    slow = readings.operator("a", same).queue().operator("b", same).queue()
    back = alerts.loop("again", "n LONG")
    both = readings.union("all", slow, back)
    both.feed(back)
    both.sink("out", FakeSink(), latency="100ms")
    assert alerts.check(FLOOR) == (
        "pipeline 'alerts': sink 'out': its target of 100 ms is below the floor of 140 ms "
        "(alerts.a 35 ms, alerts.b 35 ms, alerts.all 35 ms, alerts.out 35 ms): "
        "rows will be late even when nothing else runs",
    )
