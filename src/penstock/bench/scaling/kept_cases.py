"""Cases that were tried before, kept in files: an hour of runs can be broken off, and gone on with later."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.bench.scaling.allocations import Tried
from penstock.bench.scaling.cases import Case
from penstock.bench.scaling.stand import Run, Times
from penstock.errors import PenstockError

TOLD = ("sojourn_seconds", "meter_seconds")
"""Of a run, what figures are made of."""


class KeptCases:
    """A folder with a file for each case."""

    def __init__(self, folder: Path, times: Times):
        self._folder, self._times = folder, times

    def tried(self, case: Case, run: Callable[[], Tried]) -> Tried:
        """What is kept of a case; else it is run, and kept."""
        path = self._folder / f"{re.sub('[^A-Za-z0-9.]+', '-', case.name)}.json"
        if path.exists():
            return self._of_json(case, json.loads(path.read_text()), path)
        made = run()
        self._folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self._to_json(made), indent=1))
        return made

    def _to_json(self, tried: Tried) -> dict[str, Any]:
        return {
            "times": vars(self._times),
            "recommended": dict(tried.recommended),
            "runs": [
                {"slots": dict(run.slots), **{key: run.told[key] for key in TOLD}} for run in tried.runs
            ],
            "predicted": [dict(each) for each in tried.predicted],
            "plans": dict(tried.plans),
            "models": dict(tried.models),
        }

    def _of_json(self, case: Case, kept: Mapping[str, Any], path: Path) -> Tried:
        if kept["times"] != vars(self._times):
            raise PenstockError(
                f"cases that are told together must have run as long, but {path} was with {kept['times']}, "
                f"and this run is with {vars(self._times)}: name another folder, or the same times"
            )
        runs = [Run(case, each["slots"], {key: each[key] for key in TOLD}) for each in kept["runs"]]
        return Tried(case, kept["recommended"], runs, kept["predicted"], kept["plans"], kept["models"])
