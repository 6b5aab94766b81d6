from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, match, same

from penstock.pipeline import Loop, Operator, Pipeline, PipelineError, Sink, Source, Window
from penstock.pipeline.stream import union_by_name


@pytest.fixture
def alerts():
    return Pipeline("alerts")


@pytest.fixture
def readings(alerts):
    return alerts.source("readings", FakeSource())


def refused(text):
    return pytest.raises(PipelineError, match=f"^{re.escape(text)}$")


def test_declaring_imports_no_spark():
    script = "import sys, penstock.pipeline, penstock.stages; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_every_node_is_kept_with_its_settings_in_the_order_declared(alerts, readings):
    clean = readings.operator("clean", same, parallelism=2, fuse=False, stateful=True, watermark="ts")
    back = alerts.loop("again", "n LONG")
    merged = clean.union("all", back, "readings")
    merged.join("match", readings, match, watermark="ts").sink("out", FakeSink(), latency="800ms")
    assert list(alerts.nodes.values()) == [
        Source("readings", FakeSource()),
        Operator("clean", "operator", ("readings",), same, 2, False, False, True, "ts"),
        Loop("again", "n LONG"),
        Operator("all", "union", ("clean", "again", "readings"), union_by_name),
        Operator("match", "join", ("all", "readings"), match, stateful=True, watermark="ts"),
        Sink("out", "match", FakeSink(), 0.8),
    ]


def test_a_window_keeps_its_settings_in_seconds(alerts, readings):
    readings.window(
        "per second", on="ts", size="1s", slide="500ms", late="2s", by="sensor", aggregate="count(*) as n"
    )
    node = alerts.nodes["per second"]
    assert node.window == Window("ts", 1.0, 0.5, 2.0, ("sensor",), ("count(*) as n",))
    assert (node.stateful, node.watermark, node.keeps_dead_letters) == (True, "ts", True)


def test_a_window_without_slide_moves_by_its_own_size_and_waits_for_nothing(alerts, readings):
    readings.window("w", on="ts", size="10s", aggregate=["count(*) as n", "max(v) as top"])
    assert alerts.nodes["w"].window == Window("ts", 10.0, 10.0, 0.0, (), ("count(*) as n", "max(v) as top"))


def test_parsing_puts_bad_rows_aside_and_is_part_of_the_version(alerts, readings):
    readings.parse("parse", "v DOUBLE", column="body", format="csv")
    node = alerts.nodes["parse"]
    assert node.dead_letters
    assert node.settings == (("schema", "v DOUBLE"), ("column", "body"), ("format", "csv"))


def test_a_declared_stream_is_found_by_name(alerts, readings):
    assert alerts.stream("readings") == readings
    with refused("pipeline 'alerts': stream 'prices': no such node, of ['readings']: declare it first"):
        alerts.stream("prices")


def test_two_nodes_never_share_a_name(alerts, readings):
    readings.sink("out", FakeSink())
    with refused(
        "pipeline 'alerts': sink 'out': a name must be unique in its pipeline, "
        "got that of sink 'out': pick another"
    ):
        readings.sink("out", FakeSink())
    with refused(
        "pipeline 'alerts': operator 'readings': a name must be unique in its pipeline, "
        "got that of source 'readings': pick another"
    ):
        readings.operator("readings", same)


@pytest.mark.parametrize("name", ["", "a.b", "a/b", "_a", " a", "a ", "a\n", "x" * 81, None])
def test_a_name_that_cannot_be_a_directory_is_refused(alerts, readings, name):
    rule = (
        "a name must begin with a letter or digit and have letters, digits, spaces, '-' and '_' only, "
        f"at most 80, got {name!r}: queues and checkpoints are named after it"
    )
    with refused(f"pipeline 'alerts': operator {name!r}: {rule}"):
        readings.operator(name, same)
    with refused(f"pipeline {str(name)!r}: {rule}"):
        Pipeline(name)


@pytest.mark.parametrize("name", ["a", "per second", "größe_2", "x" * 80])
def test_names_may_have_spaces_and_letters_of_any_language(readings, name):
    assert readings.operator(name, same).name == name


@pytest.mark.parametrize("parallelism", [0, -1, 1.5, True, "2"])
def test_parallelism_that_gives_no_task_is_refused(readings, parallelism):
    with refused(
        "pipeline 'alerts': operator 'clean': parallelism must be a whole number above 0, "
        f"got {parallelism!r}: no task could run it"
    ):
        readings.operator("clean", same, parallelism=parallelism)


def test_an_operator_without_a_function_is_refused(readings):
    with refused(
        "pipeline 'alerts': operator 'clean': its function must be callable, got str: there is nothing to run"
    ):
        readings.operator("clean", "value > 3")


def test_a_sink_with_an_impossible_target_is_refused(readings):
    with refused(
        "pipeline 'alerts': sink 'out': latency target must be positive, got 0 ms: no turn could ever meet it"
    ):
        readings.sink("out", FakeSink(), latency="0ms")


def test_ends_that_do_not_say_what_they_are_are_refused(alerts, readings):
    with refused(
        "pipeline 'alerts': source 'more': a source must have `native`, True or False, got str: "
        "it is not known whether Spark or a queue reads it"
    ):
        alerts.source("more", "/data")
    with refused(
        "pipeline 'alerts': sink 'out': a sink must have `guarantee`, "
        "one of 'exactly once', 'at least once', got str: its rows could be lost or doubled unnoticed"
    ):
        readings.sink("out", "/data")
    with refused(
        "pipeline 'alerts': sink 'out': a sink must have `guarantee`, "
        "one of 'exactly once', 'at least once', got 'mostly' from FakeSink: "
        "its rows could be lost or doubled unnoticed"
    ):
        readings.sink("out", FakeSink("mostly"))
    assert list(alerts.nodes) == ["readings"]


def test_streams_of_two_pipelines_do_not_meet(readings):
    foreign = Pipeline("other").source("prices", FakeSource())
    with refused(
        "pipeline 'alerts': join 'm': streams must be of one pipeline, got 'prices' of 'other': "
        "let that one write to a spool, and this one read it"
    ):
        readings.join("m", foreign, match)
    with refused("pipeline 'alerts': union 'u': a stream or its name must be given, got int"):
        readings.union("u", 3)


def test_a_union_of_one_stream_is_refused(readings):
    with refused(
        "pipeline 'alerts': union 'u': a union must have two streams or more, got one: it would do nothing"
    ):
        readings.union("u")


def test_a_loop_is_fed_once_and_by_an_operator(alerts, readings):
    back, clean = alerts.loop("again", "n LONG"), readings.operator("clean", same)
    with refused(
        "pipeline 'alerts': loop 'again': a loop must be fed by an operator, got loop 'again': "
        "no row would ever change"
    ):
        back.feed(back)
    with refused(
        "pipeline 'alerts': loop 'clean': feed must be given a loop, got operator 'clean': "
        "declare a loop() instead"
    ):
        readings.feed(clean)
    clean.feed(back)
    with refused(
        "pipeline 'alerts': loop 'again': a loop must be fed once, got 'clean' and 'readings': "
        "union them first"
    ):
        readings.feed(back)
    with refused(
        "pipeline 'alerts': loop 'more': schema must name at least one field, got ' ': "
        "an empty loop has no columns"
    ):
        alerts.loop("more", " ")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"size": "0s"}, "window size must be positive, got 0 ms: no row could fall into it"),
        ({"slide": "0s"}, "slide must be positive, got 0 ms: windows would never move on"),
        ({"late": "-1s"}, "lateness must not be negative, got -1 s: a window cannot close before its end"),
        (
            {"slide": "2s"},
            "slide must not exceed the window size of 1 s, got 2 s: rows between two windows would be lost",
        ),
        (
            {"aggregate": ()},
            "aggregate must have at least one expression, got none: the windows would carry no result",
        ),
        (
            {"by": ("window",)},
            "by must not contain 'window', got it: the window itself is the output column of that name",
        ),
    ],
)
def test_a_window_that_cannot_work_is_refused(readings, settings, text):
    with refused(f"pipeline 'alerts': window 'w': {text}"):
        readings.window("w", **{"on": "ts", "size": "1s", "aggregate": "count(*) as n", **settings})


@pytest.mark.parametrize(
    ("schema", "form", "text"),
    [
        ("v DOUBLE", "xml", "format must be 'json' or 'csv', got 'xml': nothing reads such text"),
        (" ", "json", "schema must name at least one field, got ' ': rows would have no column"),
        ("v INT, Raw STRING", "json",
         "schema must not have a field 'raw': rows that do not parse use that column"),
        ("`dead_letter` INT", "csv",
         "schema must not have a field 'dead_letter': rows that do not parse use that column"),
        ("v INT, m MAP<STRING, INT>, V INT", "json", "schema must name a field once, got 'v' 2 times"),
    ],
)  # fmt: skip
def test_a_parse_that_cannot_work_is_refused(readings, schema, form, text):
    with refused(f"pipeline 'alerts': parse 'p': {text}"):
        readings.parse("p", schema, format=form)


def test_a_function_called_at_every_turn_is_kept_with_its_schema(alerts, readings):
    readings.each_turn("train", same, schema="slope DOUBLE", parallelism=2, fuse=False)
    assert alerts.nodes["train"] == Operator(
        "train",
        "each_turn",
        ("readings",),
        same,
        2,
        False,
        settings=(("schema", "slope DOUBLE"),),
        turn_schema="slope DOUBLE",
    )


def test_a_function_called_at_every_turn_must_name_its_columns(readings):
    with refused(
        "pipeline 'alerts': each_turn 'train': schema must name at least one field, got ' ': "
        "rows would have no column"
    ):
        readings.each_turn("train", same, schema=" ")
