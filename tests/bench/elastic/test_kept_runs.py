"""Runs that are made one at a time are told together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.bench.elastic.made import made_run

from penstock.bench.elastic.kept_runs import KeptRuns
from penstock.bench.elastic.scenarios import judged


def test_a_run_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    run = made_run("nodes", 6, 12, latency=3.0, changes=(100.0,), pauses=(0.5, 1.0))
    KeptRuns(tmp_path).keep(run)
    back = KeptRuns(tmp_path).of(run.scale)["nodes"]
    assert judged(back) == judged(run)
    assert (back.scale, back.samples, back.changes) == (run.scale, run.samples, run.changes)
    assert back.pauses == run.pauses
    assert np.array_equal(back.counted.latencies.due, run.counted.latencies.due)


def test_the_last_run_of_a_scenario_counts(tmp_path: Path) -> None:
    kept, scale = KeptRuns(tmp_path), made_run("static", 14, 16, 1.0).scale
    kept.keep(made_run("static", 14, 16, latency=1.0))
    kept.keep(made_run("static", 14, 16, latency=2.0))
    assert judged(kept.of(scale)["static"]).latency_seconds == 2.0


def test_runs_of_another_scale_are_left_out_but_not_those_of_another_target(tmp_path: Path) -> None:
    run = made_run("model", 7, 9, 2.0)
    KeptRuns(tmp_path).keep(replace(run, scale=replace(run.scale, target_seconds=1.7)))
    assert list(KeptRuns(tmp_path).of(run.scale)) == ["model"]
    assert KeptRuns(tmp_path).of(replace(run.scale, minute=6.0)) == {}
