from __future__ import annotations

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, match, same

from penstock.pipeline import Pipeline
from penstock.pipeline.nodes import Source
from penstock.stages import Stage, StageGraph, cut, show


@pytest.fixture
def graph():
    p = Pipeline("alerts", version="3")
    back = p.loop("again", "n LONG")
    parsed = p.source("readings", FakeSource()).parse("parse", "ts TIMESTAMP")
    tried = parsed.union("all", back).operator("try", same, parallelism=2)
    tried.operator("failed", same).feed(back)
    window = tried.window("per second", on="ts", size="1s", aggregate="count(*) as n")
    prices = p.source("prices", FakeSource(native=True))
    window.queue().join("match", prices, match).sink("out", FakeSink(), latency="800ms")
    parsed.sink("archive", FakeSink())
    return cut(p)


def test_text_is_a_tree_from_each_source_to_its_sinks(graph):
    assert show.text(graph) == (
        "pipeline alerts, version 3\n"
        "source readings\n"
        "└─ alerts.parse: parse, target 800 ms, dead letters to alerts.parse.dead\n"
        "   ├─ alerts.all: all, target 800 ms\n"
        "   │  └─ alerts.try: try, target 800 ms, parallelism 2\n"
        "   │     ├─ alerts.failed: failed, target 800 ms\n"
        "   │     │  └─ alerts.all (by loop)\n"
        "   │     └─ alerts.per second: per second, target 800 ms, state, "
        "dead letters to alerts.per second.dead\n"
        "   │        └─ alerts.match: match > sink out, target 800 ms, state\n"
        "   └─ alerts.archive: sink archive, no target\n"
        "source prices\n"
        "└─ alerts.prices: source only, target 800 ms\n"
        "   └─ alerts.match (above)"
    )


def test_mermaid_has_every_stage_end_and_queue(graph):
    lines = show.mermaid(graph).splitlines()
    assert lines[0] == "flowchart LR"
    assert '    source0(["readings"])' in lines
    assert '    stage0["alerts.parse<br>parse"]' in lines
    assert '    source0 -->|"alerts.readings"| stage0' in lines
    assert '    stage3 -.->|"alerts.failed"| stage1' in lines
    assert "    source1 --> stage5" in lines
    assert '    sink6(["out<br>within 800 ms"])' in lines
    assert "    stage6 --> sink6" in lines
    assert len(lines) == len(set(lines)) == 1 + 2 + 8 + 2 + 2 + 8 + 2


def test_graphviz_has_every_stage_end_and_queue(graph):
    lines = show.graphviz(graph).splitlines()
    assert lines[:2] == ['digraph "alerts" {', "    rankdir=LR;"]
    assert lines[-1] == "}"
    assert '    source0 [shape=ellipse, label="readings"];' in lines
    assert '    stage0 [shape=box, label="alerts.parse\\nparse"];' in lines
    assert '    stage3 -> stage1 [label="alerts.failed", style=dashed, constraint=false];' in lines
    assert '    stage6 -> sink6 [label=""];' in lines


def test_names_that_would_break_the_syntax_are_escaped():
    source = Source('a"#<\\', FakeSource(native=True))
    stage = Stage("s", "p", ("p.a",), (), (), source, None, None, 1)
    graph = StageGraph("p", "1", (stage,), {})
    assert '    source0(["a#quot;#35;#lt;\\"])' in show.mermaid(graph).splitlines()
    assert '    source0 [shape=ellipse, label="a\\"#<\\\\"];' in show.graphviz(graph).splitlines()
