"""The log is enough to make every decision again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.plan.elastic.plant import Run
from tests.plan.elastic.ramp import SECONDS, model_based, paper

from penstock.plan.elastic import ElasticError, Elasticity, Periods, Record, Thresholds, replay
from penstock.plan.elastic.changes import change_from_json


@pytest.mark.parametrize("run", [paper(), model_based(0.004)], ids=["paper", "model-based"])
def test_a_log_that_was_written_down_leads_to_the_same_decisions(run: Run) -> None:
    run.go(SECONDS)
    lines = [json.dumps(record.to_json()) for record in run.log]
    log = [Record.from_json(json.loads(line)) for line in lines]
    assert log == run.log
    assert replay(run.elasticity, log) == run.decisions
    assert len(run.decisions) > 30


def test_a_log_whose_beginning_is_gone_is_replayed_from_a_state_in_it() -> None:
    run = paper().go(SECONDS // 2)
    middle, seen = run.state, len(run.log)
    run.go(SECONDS // 2)
    rest = run.log[seen:]
    rest[0] = replace(rest[0], state=middle)
    log = [Record.from_json(json.loads(json.dumps(record.to_json()))) for record in rest]
    assert replay(run.elasticity, log) == tuple(each for record in rest for each in record.decisions)
    assert replay(run.elasticity, run.log[seen:]) != replay(run.elasticity, log)


def test_a_run_in_compressed_time_leads_to_the_same_changes() -> None:
    run = model_based(0.004).go(SECONDS)
    periods = Periods().scaled(0.05)
    quick = Elasticity.model_based(run.elasticity.pipelines, run.elasticity.regions, periods)
    log = [replace(each, seen=replace(each.seen, now=0.05 * each.seen.now)) for each in run.log]
    again = replay(quick, log)
    changes = [(each.level, each.kind, each.change) for each in run.decisions]
    assert [(each.level, each.kind, each.change) for each in again] == changes


def test_other_settings_lead_to_other_decisions() -> None:
    run = paper().go(SECONDS)
    eager = replace(run.elasticity, operators=Thresholds(out_share=0.5))
    assert replay(eager, run.log) != run.decisions


def test_a_change_that_is_not_known_is_refused() -> None:
    with pytest.raises(ElasticError, match=r"a stored change must be one of AddReplica, .*, got 'Explode'"):
        change_from_json({"change": "Explode"})
