from __future__ import annotations

import json

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, match, same

from penstock.pipeline import Pipeline
from penstock.stages import cut, describe, differences, fingerprint


def graph_of(
    name="p", version="1", first="clean", size="1s", parallelism=1, latency="1s", function=same,
    schema="v INT", extra=False, swapped=False, native=False,
):  # fmt: skip
    p = Pipeline(name, version=version)
    source, other = p.source("in", FakeSource(native)), p.source("other", FakeSource())
    clean = source.parse("parse", schema).operator(first, function, parallelism=parallelism)
    window = clean.window("w", on="ts", size=size, aggregate="count(*) as n", parallelism=parallelism)
    left, right = (other, window) if swapped else (window, other)
    joined = left.join("m", right, match, parallelism=parallelism)
    joined.sink("out", FakeSink(), latency=latency)
    if extra:
        other.sink("raw", FakeSink())
    return cut(p)


def changed(**settings):
    return differences(describe(graph_of()), describe(graph_of(**settings)))


def test_a_description_is_itself_after_json_and_the_fingerprint_is_stable():
    described = describe(graph_of())
    assert json.loads(json.dumps(described)) == described
    assert fingerprint(graph_of()) == fingerprint(graph_of())
    assert changed() == []


def test_a_fingerprint_stays_the_same_over_releases():
    p = Pipeline("p")
    p.source("in", FakeSource()).operator("a", same).sink("out", FakeSink())
    assert fingerprint(cut(p)) == "236c5cafbb670a62"


@pytest.mark.parametrize("settings", [{"latency": "9s"}, {"function": lambda rows: rows}])
def test_targets_and_functions_may_change_without_a_new_version(settings):
    assert changed(**settings) == []
    assert fingerprint(graph_of(**settings)) == fingerprint(graph_of())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"version": "2"}, ["version was '1', is '2'"]),
        ({"size": "2s"}, ["stage 'p.w': operator 'w': size_seconds was 1.0, is 2.0",
                          "stage 'p.w': operator 'w': slide_seconds was 1.0, is 2.0"]),
        ({"parallelism": 2}, ["stage 'p.w': parallelism was 1, is 2",
                              "stage 'p.m': parallelism was 1, is 2"]),
        ({"schema": "v LONG"}, ["stage 'p.parse': operator 'parse': schema was 'v INT', is 'v LONG'"]),
        ({"extra": True}, ["stage 'p.raw' is new"]),
        ({"native": True}, ["stage 'p.parse': native source was None, is 'in'"]),
        ({"first": "tidy"}, ["stage 'p.w': inputs was ['p.parse to clean[0]'], is ['p.parse to tidy[0]']",
                             "stage 'p.w': operators was ['clean', 'w'], is ['tidy', 'w']"]),
        ({"swapped": True}, ["stage 'p.m': inputs was ['p.w to m[0]', 'p.other to m[1]'], "
                             "is ['p.other to m[0]', 'p.w to m[1]']"]),
    ],
)  # fmt: skip
def test_each_change_that_a_checkpoint_does_not_survive_is_named(settings, said):
    assert changed(**settings) == said
    assert fingerprint(graph_of(**settings)) != fingerprint(graph_of())


def test_a_stage_that_went_is_named():
    assert differences(describe(graph_of(extra=True)), describe(graph_of())) == ["stage 'p.raw' is gone"]


def test_another_pipeline_is_named_first():
    assert changed(name="q")[0] == "pipeline was 'p', is 'q'"


def test_an_operator_that_became_another_kind_is_said_as_such():
    def graph(add):
        p = Pipeline("p")
        add(p.source("in", FakeSource())).sink("out", FakeSink())
        return describe(cut(p))

    plain = graph(lambda s: s.operator("x", same, stateful=True, watermark="ts"))
    window = graph(lambda s: s.window("x", on="ts", size="1s", aggregate="count(*) as n"))
    assert differences(plain, window) == ["stage 'p.x': operator 'x': kind was 'operator', is 'window'"]


def test_a_loop_of_another_schema_is_named():
    def graph(schema):
        p = Pipeline("p")
        back = p.loop("again", schema)
        merged = p.source("in", FakeSource()).union("all", back)
        merged.feed(back)
        merged.sink("out", FakeSink())
        return describe(cut(p))

    assert differences(graph("n INT"), graph("n LONG")) == [
        "loops was {'p.all': 'n INT'}, is {'p.all': 'n LONG'}"
    ]
