from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.pipeline import sinks, sources
from penstock.stages import StageGraph, cut
from penstock.workloads.riot import PAPER_INSTANCES, TOPOLOGIES, generate_city, requests, topology

CITY = generate_city(100)


def declared(name: str, *, fused: bool = False, paper: bool = False) -> StageGraph:
    chosen = topology(name)
    out = sinks.Callback(lambda rows, turn: None)
    source = sources.Replay(chosen.trace(CITY), 10.0, stamp="arrived", number="msgid")
    instances = chosen.instances if paper else None
    return cut(chosen.declare(source, publish=out, table=out, fused=fused, instances=instances))


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_unfused_each_operator_of_the_paper_is_a_stage_with_its_instances(name: str) -> None:
    graph = declared(name, paper=True)
    stages = {stage.name.removeprefix(f"{name}."): stage.parallelism for stage in graph.stages}
    assert stages == PAPER_INSTANCES[name]
    assert {stage.parallelism for stage in declared(name).stages} == {1}


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("etl", ["read", "gather", "table_insert", "publish"]),
        ("pred", ["senml_parse", "predict"]),
        ("stats", ["read", "summarise"]),
        ("train", ["train"]),
    ],
)
def test_fused_a_queue_stands_only_where_it_must(name: str, stages: list[str]) -> None:
    assert [stage.name for stage in declared(name, fused=True).stages] == [
        f"{name}.{each}" for each in stages
    ]


def test_branches_meet_where_the_paper_lets_them() -> None:
    consumers = {name: queue.consumers for name, queue in declared("pred").queues.items()}
    assert consumers["pred.senml_parse"] == (
        "pred.decision_tree",
        "pred.linear_regression",
        "pred.block_average",
    )
    assert consumers["pred.block_average"] == consumers["pred.linear_regression"] == ("pred.error_estimate",)
    assert consumers["pred.error_estimate"] == consumers["pred.decision_tree"] == ("pred.publish",)


def test_the_timer_asks_for_all_stored_rows_in_turn() -> None:
    asked = requests(rows_each=40, city=CITY).to_pylist()
    assert asked == [{"rowstart": start, "rowend": start + 40} for start in (0, 20, 40, 60)]
    assert requests(rows_each=500, city=CITY).to_pylist() == [{"rowstart": 0, "rowend": 500}]


def test_an_unknown_topology_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        PenstockError,
        match=r"^a topology must be one of etl, pred, stats, train, got 'iot': there is no other$",
    ):
        topology("iot")
