"""From declared pipelines and profiles to what is simulated."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.simulate.plants import simulated

from penstock import Pipeline, Spool, Tenant, sinks, sources
from penstock.measure.profiles import StageProfile
from penstock.scheduling.policies import Llf
from penstock.simulate import SimulationError, Ticks, TurnCost, WindowSetup
from penstock.simulate.pipelines import MissingCosts, plant_of

TRACE = pa.table({"id": [1, 2, 3]})
SINK = sinks.Callback(lambda table, batch: None)


def profile(name: str) -> StageProfile | None:
    selectivity = 0.01 if name.endswith("by second") else 0.5
    slots = 4 if name.endswith("warm") else 1
    return StageProfile(0.001, selectivity, 0.04, 0.0001, 50, mean_seconds=0.05, most_rows=500, slots=slots)


def heat() -> Pipeline:
    pipeline = Pipeline("heat", tenant=Tenant("plant", share=0.5))
    rows = pipeline.source("in", sources.Replay(TRACE, 1000.0, stamp="seen"))
    warm = rows.operator("warm", lambda frame: frame, parallelism=2)
    warm.operator("keep", lambda frame: frame).sink("archive", SINK, latency="10s")
    peaks = warm.window(
        "by second", on="seen", size="2s", slide="1s", late="500ms", aggregate="count(*) as n"
    )
    peaks.sink("alarms", SINK, latency="800ms")
    return pipeline


def test_stages_keep_their_queues_costs_windows_and_targets() -> None:
    plant = plant_of([heat()], profile, scv=0.1)
    stages = {stage.name: stage for stage in plant.stages}
    assert list(stages) == ["heat.warm", "heat.keep", "heat.by second"]
    warm, peaks = stages["heat.warm"], stages["heat.by second"]
    # It was learned from turns on four slots, whatever the stage declares: four times the slot seconds.
    assert warm.cost == TurnCost(0.04, 0.0004, 0.1)
    assert (warm.slots, warm.latency_seconds, warm.depth, warm.share) == (2, 0.8, 1, 0.5)
    assert peaks.window == WindowSetup(2.0, 1.0, 0.5)
    assert (peaks.sink, peaks.target_seconds) == ("alarms", 0.8)
    assert {each.name for each in plant.below(warm)} == {"heat.keep", "heat.by second"}
    arrivals = plant.inflows[0].arrivals
    assert isinstance(arrivals, Ticks)
    assert (arrivals.rows_per_second, arrivals.tick_seconds) == (1000.0, 0.1)
    assert plant.rates["heat.keep"] == pytest.approx(500.0)


def test_a_pipeline_is_simulated_from_its_profiles_alone() -> None:
    outcome = simulated(plant_of([heat()], profile), 4, 60.0, Llf())
    assert outcome.sinks["heat.alarms"].share_in_time == 1.0
    # Two turns, of about 100 and 50 rows, each after rows have waited for the next turn.
    assert 0.08 < outcome.sinks["heat.archive"].latency.quantile(0.5) < 0.3


def test_a_rate_source_comes_once_a_second_and_spark_cuts_its_turns() -> None:
    pipeline = Pipeline("r")
    pipeline.source("in", sources.Rate(100)).sink("out", SINK)
    plant = plant_of([pipeline], profile)
    arrivals = plant.inflows[0].arrivals
    assert isinstance(arrivals, Ticks)
    assert (arrivals.tick_seconds, plant.inflows[0].lag_seconds) == (1.0, 0.01)
    assert plant.stages[0].native
    assert simulated(plant, 1, 100.0).stages["r.out"].turns == pytest.approx(95, abs=1)


def test_rates_are_scaled_in_proportion_or_given_to_sources_that_have_none(tmp_path: Path) -> None:
    pipeline = Pipeline("p")
    for name, rate in (("a", 10.0), ("b", 30.0)):
        pipeline.source(name, sources.Replay(TRACE, rate)).sink(f"out {name}", SINK)
    plant = plant_of([pipeline], profile, rows_per_second=400.0)
    assert [flow.arrivals.rows_per_second for flow in plant.inflows] == pytest.approx([100.0, 300.0])
    with Spool(tmp_path) as spool:
        other = Pipeline("q")
        other.source("in", sources.FromSpool(spool, "id LONG")).sink("out", SINK)
        with pytest.raises(SimulationError) as error:
            plant_of([other], profile)
        assert str(error.value) == (
            "source 'in' of pipeline 'q' must tell its rate to be simulated, got a FromSpool: "
            "give the rate in rows/s"
        )
        assert plant_of([other], profile, rows_per_second=70.0).rates == {"q.out": pytest.approx(70.0)}


def test_stages_without_a_profile_are_named() -> None:
    with pytest.raises(MissingCosts) as error:
        plant_of([heat()], lambda name: None if name == "heat.keep" else profile(name))
    assert error.value.stages == ("heat.keep",)
    assert str(error.value) == (
        "stages must have known costs to be simulated, got none for heat.keep: "
        "run `penstock profile` on the same pipelines and state directory first"
    )
