from tests.pipeline.fakes import FakeSink, FakeSource, match, same

from penstock.pipeline import Pipeline
from penstock.stages import cut
from penstock.stages.stage import first_stages


def test_the_first_stage_is_the_one_that_reads_the_source() -> None:
    pipeline = Pipeline("p")
    first = pipeline.source("in", FakeSource()).operator("a", same, fuse=False)
    first.operator("b", same, fuse=False).sink("out", FakeSink())
    assert first_stages(cut(pipeline)) == {"p.a"}


def test_a_source_that_several_stages_read_counts_once() -> None:
    pipeline = Pipeline("p")
    source = pipeline.source("in", FakeSource())
    source.operator("a", same).sink("one", FakeSink())
    source.operator("b", same).sink("two", FakeSink())
    assert len(first_stages(cut(pipeline))) == 1


def test_two_sources_have_a_first_stage_each_unless_one_stage_reads_both() -> None:
    apart = Pipeline("p")
    apart.source("x", FakeSource()).operator("a", same).sink("one", FakeSink())
    apart.source("y", FakeSource(native=True)).operator("b", same).sink("two", FakeSink())
    assert first_stages(cut(apart)) == {"p.a", "p.b"}
    joined = Pipeline("p")
    x, y = joined.source("x", FakeSource()), joined.source("y", FakeSource())
    x.join("both", y, match).sink("out", FakeSink())
    assert first_stages(cut(joined)) == {"p.both"}
