from pathlib import Path

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, same

from penstock.measure.turns import TurnRecord
from penstock.pipeline import Pipeline
from penstock.spark.profiles import Profiles
from penstock.stages import StageGraph, cut


def turn(stage: str, rows: int, seconds: float, rows_out: int) -> TurnRecord:
    return TurnRecord(stage, "p", 1, "direct", 1, 0.0, seconds, rows, rows_out, 0.0, 0.0, seconds)


@pytest.fixture
def graph() -> StageGraph:
    pipeline = Pipeline("p")
    filtered = pipeline.source("in", FakeSource()).operator("filter", same, fuse=False)
    filtered.operator("join", same, fuse=False).sink("out", FakeSink())
    return cut(pipeline)


def test_a_stage_has_no_profile_before_its_first_turn() -> None:
    profiles = Profiles()
    assert profiles.of("p.filter") is None
    assert profiles.steepness_of("p.filter") is None


def test_the_steepness_follows_from_the_graph_at_the_next_refresh(graph: StageGraph) -> None:
    profiles = Profiles()
    profiles.learn(turn("p.filter", 100, 10.0, rows_out=20), 20)
    profiles.learn(turn("p.join", 20, 40.0, rows_out=0), 20)
    assert profiles.steepness_of("p.filter") is None
    profiles.refresh([graph])
    assert profiles.steepness_of("p.filter") == pytest.approx(8.0)
    assert profiles.steepness_of("p.join") == pytest.approx(0.5)
    known = profiles.of("p.join")
    assert known is not None
    assert (known.seconds_per_row, known.selectivity) == (2.0, 1.0)


def test_stages_that_never_come_back_are_forgotten(graph: StageGraph) -> None:
    profiles = Profiles()
    profiles.learn(turn("p.join", 20, 40.0, rows_out=0), 20)
    profiles.learn(turn("q.join", 20, 40.0, rows_out=0), 20)
    profiles.forget(["q.join"])
    assert profiles.of("p.join") is not None
    assert profiles.of("q.join") is None


def test_costs_are_kept_between_runs_and_learned_on(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path / "profiles.json")
    for rows in (10, 20, 30):
        profiles.learn(turn("p.join", rows, 1.0 + 0.1 * rows, rows_out=rows), rows)
    profiles.keep()
    again = Profiles(tmp_path / "profiles.json")
    assert again.of("p.join") == profiles.of("p.join")
    for each in (again, profiles):
        each.learn(turn("p.join", 40, 6.0, rows_out=40), 40)
    assert again.of("p.join") == profiles.of("p.join")
    (tmp_path / "profiles.json").write_text("{")
    assert Profiles(tmp_path / "profiles.json").of("p.join") is None


def test_rows_that_go_round_a_loop_count_as_gone() -> None:
    pipeline = Pipeline("p")
    back = pipeline.loop("again", schema="id LONG")
    step = pipeline.source("in", FakeSource()).union("merge", back).operator("step", same, fuse=False)
    step.operator("done", same, fuse=False).sink("out", FakeSink())
    step.operator("more", same, fuse=False).feed(back)
    profiles = Profiles()
    for stage in cut(pipeline).stages:
        profiles.learn(turn(stage.name, 10, 5.0, rows_out=10), 10)
    profiles.refresh([cut(pipeline)])
    assert profiles.steepness_of("p.more") == pytest.approx(2.0)
