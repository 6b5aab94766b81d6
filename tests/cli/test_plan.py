from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.pipeline.fakes import FakeSink, FakeSource, same

from penstock.cli.main import main
from penstock.cli.plan import Case, rates_of, what_if
from penstock.cli.state_directory import StateDirectory
from penstock.errors import PenstockError
from penstock.measure.profiles import Profiler
from penstock.measure.turns import TurnRecord
from penstock.pipeline import Pipeline
from penstock.plan.slot_changes import SlotDecision
from penstock.stages import cut

FILE = """
import pyarrow as pa
from penstock import Pipeline, sinks, sources

pipeline = Pipeline("p", fuse=False)
read = pipeline.source("in", sources.Replay(pa.table({"id": [1]}), 500.0)).operator("read", lambda rows: rows)
keep = read.operator("keep", lambda rows: rows)
keep.sink("out", sinks.Callback(lambda table, batch: None), latency="300ms")
"""


def profile(stage: str, fixed: float, per_row: float, slots: int = 1) -> dict[str, float]:
    """`per_row` are slot seconds."""
    profiler = Profiler()
    for rows in (10, 1000, 50, 500, 20, 1000, 10, 800):
        seconds = fixed + per_row * rows / slots
        turn = TurnRecord(stage, "p", 1, "direct", slots, 0.0, seconds, rows, rows, 0.0, 0.0, seconds)
        profiler.learn(turn)
    return profiler.to_json()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    costs = {"p.read": profile("p.read", 0.05, 0.0001), "p.keep": profile("p.keep", 0.05, 0.003)}
    (folder / "profiles.json").write_text(json.dumps(costs))
    return folder


def plan(file: Path, state: Path, *more: str) -> int:
    return main(["plan", str(file), "--state", str(state), "--picture", str(file.parent / "plan.png"), *more])


def test_a_plan_tells_slots_and_latency_and_what_helps(
    file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(file, state, "--slots", "6") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "6 slots, each stage has its own" in said
    # 500 rows/s of 3 ms each keep a slot and a half busy.
    assert "p.keep 500 5 1.5" in said
    assert said.count(" bulk") == 2
    assert "the next bottleneck is p.keep, at 3.3" in said
    assert (file.parent / "plan.png").stat().st_size > 10_000


@pytest.mark.parametrize(("declared", "slots"), [(1, 4), (11, 2)])
def test_costs_are_those_of_the_slots_that_turns_really_had(
    declared: int, slots: int, file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # After a controller has given more than was declared, and where the pool had fewer.
    keep = f'"keep", lambda rows: rows, parallelism={declared}'
    file.write_text(FILE.replace('"keep", lambda rows: rows', keep))
    costs = {"p.read": profile("p.read", 0.05, 0.0001), "p.keep": profile("p.keep", 0.05, 0.003, slots)}
    (state / "profiles.json").write_text(json.dumps(costs))
    assert plan(file, state, "--slots", "6") == 0
    assert "p.keep 500 5 1.5" in " ".join(capsys.readouterr().out.split())


def test_the_fewest_slots_meet_the_targets_and_a_tighter_target_takes_more(
    file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(file, state, "--fewest") == 0
    own = capsys.readouterr().out
    assert "missed" not in own
    assert plan(file, state, "--fewest", "--target", "220ms") == 0
    tight = capsys.readouterr().out
    assert _slots(tight) > _slots(own)


def _slots(said: str) -> int:
    return int(said.split("as it is: ")[1].split(" slots")[0])


def test_what_if_more_came_is_answered_beside_it(
    file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(file, state, "--slots", "6", "--what-if", "rate=2x,slots=9", "--what-if", "rate=9x") == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "rate=2x,slots=9: 9 slots" in said
    assert "rate=9x: the stages must have at least 15 slots, got 6" in said


def test_models_are_those_asked_for_or_nearest_to_what_the_engine_chose(
    file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*more: str) -> str:
        assert plan(file, state, "--slots", "6", *more) == 0
        return " ".join(capsys.readouterr().out.split())

    bulk = said()
    assert "that the engine chose" not in bulk
    stages = ("p.read", "p.keep", "other.stage")
    for model in ("bulk", "turns"):
        decision = SlotDecision(1.0, "p", False, "", {}, {}, models=dict.fromkeys(stages, model))
        with (state / "slots.jsonl").open("a") as lines:
            lines.write(json.dumps(decision.to_json()) + "\n")
    chosen = said()
    assert chosen.count(" dealt ") == 2
    assert "models: nearest to those that the engine chose last (turns)" in chosen
    assert said("--model", "bulk") == bulk
    assert said("--model", "mmk").count(" mmk ") == 2


def test_costs_that_nobody_measured_are_asked_for(
    file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "profiles.json").write_text(json.dumps({"p.read": profile("p.read", 0.05, 0.0001)}))
    assert plan(file, state) == 2
    assert "has none of p.keep: run `penstock profile` on the file first" in capsys.readouterr().err


def test_a_rate_that_a_source_does_not_tell_is_asked_for(
    file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE.replace('sources.Replay(pa.table({"id": [1]}), 500.0)', 'sources.Files("in")'))
    assert plan(file, state) == 2
    assert "give --rows p.in=N" in capsys.readouterr().err
    assert plan(file, state, "--slots", "6", "--rows", "p.in=250") == 0
    assert "p.read 250" in " ".join(capsys.readouterr().out.split())


def test_a_what_if_says_rate_or_slots() -> None:
    assert what_if("rate=1.5x,slots=3", Case()) == Case("rate=1.5x,slots=3", 1.5, 3)
    for wrong in ("rate=2", "slots=0", "speed=3", "rate=-1x"):
        with pytest.raises(PenstockError) as error:
            what_if(wrong, Case())
        assert str(error.value) == f"a what-if must be rate=2x, slots=8 or both with a comma, got {wrong!r}"


class Measured(StateDirectory):
    """Of an engine that runs."""

    engine_process = "1"  # type: ignore[assignment]
    measured: dict[str, float]

    def last_rates(self) -> dict[str, float]:
        return self.measured


def test_what_other_stages_make_is_taken_off_what_an_engine_measured(tmp_path: Path) -> None:
    made = Pipeline("p")
    few = made.source("few", FakeSource()).operator("prep", same)
    many = made.source("many", FakeSource())
    many.union("all", few.queue()).operator("both", same).sink("out", FakeSink())
    graph = cut(made)
    (both,) = (stage.name for stage in graph.stages if stage.name != "p.prep")
    state = Measured(tmp_path)
    state.measured = {"p.prep": 20.0, both: 1010.0}
    assert rates_of([graph], state, {}, {"p.prep": 0.5, both: 1.0}) == {"p.prep": 20.0, both: 1000.0}
