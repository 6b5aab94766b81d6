"""Finished runs in files, so that a run can be made alone and told together with those before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.bench.elastic.messages import Counted, Latencies
from penstock.bench.elastic.pauses import Pause
from penstock.bench.elastic.scale import SCENARIOS, Scale
from penstock.bench.elastic.stand import Run

SUFFIX = ".run.json"


@dataclass(frozen=True)
class KeptRuns:
    """The last run of each scenario, in a folder."""

    folder: Path

    def keep(self, run: Run) -> None:
        """Takes the place of an earlier run of the same scenario."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{run.scenario}{SUFFIX}").write_text(json.dumps(run_to_json(run)))

    def of(self, scale: Scale) -> dict[str, Run]:
        """Those made at that scale: times and rates of others could not be compared."""
        found = {}
        for scenario in SCENARIOS:
            path = self.folder / f"{scenario}{SUFFIX}"
            if path.exists():
                run = run_from_json(json.loads(path.read_text()))
                if replace(run.scale, target_seconds=scale.target_seconds) == scale:
                    found[scenario] = run
        return found


def run_to_json(run: Run) -> dict[str, Any]:
    """A dict for `json.dumps`."""
    counted = run.counted
    return {
        **vars(run),
        "scale": run.scale.to_json(),
        "pauses": [vars(each) for each in run.pauses],
        "counted": {
            "sent": counted.sent,
            "lost": counted.lost,
            "doubled": counted.doubled,
            "due": np.round(counted.latencies.due, 3).tolist(),
            "seconds": np.round(counted.latencies.seconds, 4).tolist(),
        },
    }


def run_from_json(stored: Mapping[str, Any]) -> Run:
    """The run that `run_to_json` was called on."""
    told = stored["counted"]
    latencies = Latencies(np.array(told["due"]), np.array(told["seconds"]))
    counted = Counted(told["sent"], told["lost"], told["doubled"], latencies)
    pauses = [Pause(**each) for each in stored["pauses"]]
    return Run(**{**stored, "scale": Scale(**stored["scale"]), "counted": counted, "pauses": pauses})
