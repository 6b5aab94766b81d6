from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, from_spool, readings, table

from penstock import Pipeline, sources
from penstock.cli.main import main
from penstock.errors import PenstockError
from penstock.measure.slot_figures import SlotMeasuring
from penstock.operators.emulate import service
from penstock.plan import SlotSettings

pytestmark = pytest.mark.spark
ROWS = readings(480, seconds=60)


def test_a_stage_that_cannot_keep_up_gets_another_slot_and_every_row_is_worked_on_once(
    engine: EngineFactory, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Kept()
    pipeline = Pipeline("p")
    # 1.6 slots' work: times are emulated, so that no machine is too slow or too quick for it.
    replay = sources.Replay(table(ROWS), 80, loop=False)
    slow = pipeline.source("readings", replay).operator("slow", service(0.02))
    slow.sink("out", kept.sink)
    settings = SlotSettings("fewest-slots", 2, target_seconds=0.3, between_seconds=0.0, window=2)
    runs = engine(slot_control=settings, slot_measuring=SlotMeasuring(interval_seconds=1.0))
    runs.submit(pipeline)
    eventually(lambda: runs.slots == {"p.slow": 2}, 60.0)
    runs.drain(120.0)
    assert kept.column("id") == list(range(480))
    figures = runs.slot_figures()["p"]
    assert figures.stages["p.slow"].slots == 2
    assert figures.stages["p.slow"].moments.slot_rows_per_second <= 50.0
    assert set(runs.slot_models("p")) == {"p.slow"}
    runs.stop()
    assert main(["explain", "--state", str(state), "p.slow"]) == 0
    said = capsys.readouterr().out
    assert "  rescale  p: E[T] measured " in said
    assert "s, over 0.3 s: 2 slots rather than 1" in said
    assert "  slots  p.slow 1 -> 2: E[T] measured" in said
    assert said.count("  keep  p: ") == 1


def test_figures_follow_inputs_through_a_split_and_a_loop(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, left, right = spool(), Kept(), Kept()
    pipeline = Pipeline("p", fuse=False)
    again = pipeline.loop("again", "id BIGINT, round INT")
    first = pipeline.source("readings", from_spool(source)).operator(
        "first", lambda rows: rows.selectExpr("id", "0 AS round")
    )
    first.sink("left", left.sink)
    rounds = first.union("rounds", again)
    on = rounds.operator("on", lambda rows: rows.selectExpr("id", "round + 1 AS round"))
    on.operator("back", lambda rows: rows.filter("round < 3")).feed("again")
    on.sink("right", right.sink)
    runs = engine(slot_measuring=SlotMeasuring(interval_seconds=0.5))
    runs.submit(pipeline)
    done: list[Any] = []
    seen: set[float] = set()

    def looked() -> bool:
        figures = runs.slot_figures().get("p")
        if figures is not None and figures.at not in seen:
            seen.add(figures.at)
            done.append(figures)
        return sum(each.inputs.inputs_done for each in done) >= 4

    for start in range(0, 40, 10):
        source.append(table(ROWS[start : start + 10]))
    runs.drain()
    eventually(looked)
    assert len(right.rows) == 3 * 40
    assert sum(each.inputs.inputs_done for each in done) == 4
    assert done[-1].inputs.inputs_open == 0
    assert max(each.inputs.mean_seconds for each in done) > 0.0
    assert max(each.stages["p.on"].turns_per_input for each in done) >= 2.0


def test_a_controller_is_refused_more_slots_than_the_pool_has(engine: EngineFactory) -> None:
    with pytest.raises(PenstockError) as refused:
        engine(slot_control=SlotSettings("least-latency", 3))
    assert str(refused.value) == (
        "most_slots of a controller of slots must be at most the 2 of the pool, got 3: "
        "turns would wait for slots that are not there"
    )
