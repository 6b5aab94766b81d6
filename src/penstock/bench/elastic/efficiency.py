"""What a second node brings, measured; and what a thousand would, by the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from penstock.bench.elastic import plots
from penstock.bench.elastic.driver_turns import driver_turns
from penstock.bench.elastic.stand import cluster_of
from penstock.bench.result import BenchResult, Plot, Table, at_least
from penstock.bench.stats import single
from penstock.bench.workers import Worker
from penstock.scheduling.policies import Fifo
from penstock.simulate import (
    Inflow,
    Node,
    Plant,
    Simulation,
    SimulationSettings,
    StageSetup,
    Ticks,
    TurnCost,
)

ROW_SECONDS = 0.01
WARMUP_SECONDS, SECONDS = 25.0, 25.0
NODES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
GRAINS = (0.1, 1.0, 10.0)
"""Seconds of work in a turn."""
SIMULATED_SECONDS = 200.0
OVERLOAD = 1.3
MARKS = {"scale_efficiency": at_least(1.7)}


def scale_efficiency(
    folder: Path, result: BenchResult, say: Callable[[str], None], turns_per_second: float | None = None
) -> None:
    """`turns_per_second` of one driver, where it was measured already."""
    measured = {nodes: _saturated(folder, nodes, say) for nodes in (1, 2)}
    rates = {nodes: each["rows_per_second"] for nodes, each in measured.items()}
    result.put("scale_efficiency", single(rates[2] / rates[1]), MARKS["scale_efficiency"])
    cost = turn_cost((rows, slots, took) for each in measured.values() for rows, slots, took in each["turns"])
    driver = turns_per_second or driver_turns(folder, result, say)
    curves = {f"turns of {grain:g} s": curve(cost, grain, driver) for grain in GRAINS}
    simulated = [rate for _, rate in curve(cost, 1.0, 1e9, (1, 2))]
    rows = [[str(nodes), *(f"{dict(points)[nodes]:.1f}" for points in curves.values())] for nodes in NODES]
    title = "turns a second over nodes of one slot (simulated)"
    result.tables.append(Table(title, ["nodes", *curves], rows))
    result.plots.append(Plot("nodes", lambda figure: plots.draw_curve(figure, curves, driver)))
    for grain in GRAINS:
        result.put(f"driver_full_at_nodes_{grain:g}s", single(driver * (cost.fixed_seconds + grain)))
    result.setup["scale_efficiency"] = {
        "measured": "one stage of as many replicas as nodes; emulated service, as driver, generator and "
        "workers share the same cores",
        "rows_per_second": rates,
        "turn": {"fixed_seconds": cost.fixed_seconds, "row_seconds": cost.row_seconds},
        "simulated_efficiency": simulated[1] / simulated[0],
        "limit": f"the driver: {driver:.1f} turns a second as jobs, whatever they take on their nodes",
    }


def _saturated(folder: Path, nodes: int, say: Callable[[str], None]) -> Mapping[str, Any]:
    place = folder / f"saturated-{nodes}"
    (place / "driver").mkdir(parents=True)
    with (
        cluster_of(place / "cluster", nodes, say) as cluster,
        Worker("penstock.bench.elastic.worker", place / "driver") as driver,
    ):
        driver.ready()
        told: Mapping[str, Any] = driver.ask(
            do="saturated",
            cluster=str(cluster.folder),
            nodes=nodes,
            row_seconds=ROW_SECONDS,
            warmup=WARMUP_SECONDS,
            seconds=SECONDS,
        )
    say(f"  {nodes} nodes: {told['rows_per_second']:.1f} rows/s")
    return told


def turn_cost(turns: Iterable[tuple[int, int, float]]) -> TurnCost:
    """What turns took beyond their rows' service, which is emulated and so known.

    Each is (rows, slots, seconds).

    >>> cost = turn_cost([(100, 1, 1.25), (200, 2, 1.15)])
    >>> round(cost.fixed_seconds, 3), cost.row_seconds
    (0.2, 0.01)
    """
    beyond = fmean(seconds - rows / slots * ROW_SECONDS for rows, slots, seconds in turns)
    return TurnCost(max(beyond, 0.0), ROW_SECONDS)


def curve(
    cost: TurnCost, grain_seconds: float, driver: float, sizes: Sequence[int] = NODES
) -> Sequence[tuple[int, float]]:
    """Turns a second that nodes end, each of one slot and always with rows, behind one driver.

    >>> [(nodes, round(rate, -1)) for nodes, rate in curve(TurnCost(0.0), 1.0, 100.0)][-3:]
    [(200, 100.0), (500, 100.0), (1000, 100.0)]
    """
    return [(nodes, _turns(cost.fixed_seconds + grain_seconds, driver, nodes)) for nodes in sizes]


def _turns(turn_seconds: float, driver: float, nodes: int) -> float:
    """A row of the simulation is a turn: the driver starts one at a time, then a node has it."""
    starting = StageSetup("all.driver", "all", TurnCost(1.0 / driver), ("in",), output="started", lanes=1)
    running = StageSetup("all.nodes", "all", TurnCost(turn_seconds), ("started",), sink="out", lanes=nodes)
    offered = OVERLOAD * min(nodes / turn_seconds, driver)
    plant = Plant((starting, running), (Inflow("in", Ticks(offered, 1.0 / offered)),))
    pool = (Node("driver", 1), *(Node(f"node{number}", 1) for number in range(nodes)))
    seconds = max(SIMULATED_SECONDS, 40.0 * turn_seconds)
    outcome = Simulation(plant, SimulationSettings(Fifo(), pool)).run(seconds, seconds / 2)
    return outcome.stages["all.nodes"].rows_out / outcome.seconds
