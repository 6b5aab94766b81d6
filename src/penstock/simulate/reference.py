"""Two plants to see how fast simulations are: a crowded pool, and a cluster of a thousand nodes."""

from __future__ import annotations

from penstock.simulate.arrivals import Renewal, Ticks
from penstock.simulate.costs import TurnCost
from penstock.simulate.nodes import Node
from penstock.simulate.plant import Inflow, Plant, StageSetup

CHAIN = 4
"""Stages of a pipeline in the cluster."""


def crowded_pool(stages: int = 100, slots: int = 4) -> Plant:
    """More stages than slots, each with a source of 10 segments a second, eight tenths of what they can do.

    Stages take turns in rotation, with all that came meanwhile: by the shared-pool model every 6 s.
    """
    fixed, rate = 0.05, 1000.0
    per_row = 0.8 * slots / (stages * rate)
    setups = tuple(
        StageSetup(
            f"p{number}.s",
            f"p{number}",
            TurnCost(fixed, per_row, scv=0.05),
            (f"p{number}.in",),
            sink="out",
            latency_seconds=60.0,
            target_seconds=60.0,
            profiled_rows=100_000,
        )
        for number in range(stages)
    )
    inflows = tuple(
        Inflow(f"p{number}.in", Ticks(rate, 0.1, 0.1 * number / stages)) for number in range(stages)
    )
    return Plant(setups, inflows)


def large_cluster(
    stages: int = 10_000, nodes: int = 1_000, turns_per_second: float = 10.0
) -> tuple[Plant, tuple[Node, ...]]:
    """Chains of four stages whose rows come singly, by chance: in all so many turns a second."""
    chains = stages // CHAIN
    each = turns_per_second / stages
    setups, inflows = [], []
    for chain in range(chains):
        name = f"p{chain}"
        target = (1.0, 10.0, 60.0)[chain % 3]
        for place in range(CHAIN):
            last = place == CHAIN - 1
            setups.append(
                StageSetup(
                    f"{name}.s{place}",
                    name,
                    TurnCost(0.05, 0.001, scv=0.05),
                    (f"{name}.q{place}",),
                    output=None if last else f"{name}.q{place + 1}",
                    sink="out" if last else None,
                    latency_seconds=target,
                    target_seconds=target if last else None,
                    depth=CHAIN - 1 - place,
                    profiled_rows=100,
                )
            )
        inflows.append(Inflow(f"{name}.q0", Renewal(each)))
    return Plant(tuple(setups), tuple(inflows)), tuple(Node(f"node{number}", 2) for number in range(nodes))
