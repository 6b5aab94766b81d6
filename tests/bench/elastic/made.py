"""Runs as if they had been measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.bench.elastic.messages import Counted, Latencies
from penstock.bench.elastic.pauses import Pause
from penstock.bench.elastic.scale import Scale
from penstock.bench.elastic.stand import Run


def made_run(
    scenario: str,
    replicas: int,
    nodes: int,
    latency: float,
    changes: Sequence[float] = (),
    lost: int = 0,
    pauses: Sequence[float] = (),
) -> Run:
    """Ten looks of a run that stayed as it was; words due 10 s after a change or less took thrice as long."""
    due = np.arange(0.0, 300.0, 0.5)
    late = np.zeros(len(due), dtype=bool)
    for change in changes:
        late |= (due >= change) & (due < change + 10.0)
    counted = Counted(1000, lost, 0, Latencies(due, np.where(late, 3.0 * latency, latency)))
    samples: list[dict[str, Any]] = [
        {"at": 30.0 * number, "slots": {"wordcount.count": replicas}, "nodes": nodes, "waiting": {}}
        for number in range(10)
    ]
    told = [{"at": at, "kind": "slots", "subject": "wordcount.count", "became": ""} for at in changes]
    waits = [Pause(each / 2, each) for each in pauses]
    return Run(scenario, Scale(minute=5.0), counted, samples, told, waits)
