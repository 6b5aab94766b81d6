"""Emulated pipelines in a process of their own, on as many slots as asked for: one run after the other."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.bench.scaling.changing import changed_under_load
from penstock.bench.scaling.emulated_run import EmulatedRun
from penstock.bench.scaling.predictions import LastRun
from penstock.bench.workers import ending_at_once, serve


class Worker:
    """Runs pipelines from nothing, all on one warm session; what the last run measured can be asked about."""

    def __init__(self, asked: argparse.Namespace):
        from penstock.spark.session import build_session

        self._session = build_session(cores=asked.slots)
        self._slots, self._folder = asked.slots, asked.folder
        self._runs = 0
        self._last = LastRun()
        self._ways: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
            "run": self._run,
            "plan": lambda asked: self._last.predictions.plans(asked["most_slots"]),
            "predict": lambda asked: [
                self._last.predictions.seconds(each, asked.get("spell")) for each in asked["allocations"]
            ],
            "changes": self._changes,
        }

    def answer(self, request: Mapping[str, Any]) -> Any:
        return self._ways[request["do"]](request)

    def _run(self, request: Mapping[str, Any]) -> Any:
        def run(folder: Path) -> Any:
            one = EmulatedRun(self._session, self._slots, folder, request, self._last.earlier_turns(request))
            figures = one.figures()
            self._last.keep(request, one.predictions)
            return figures

        return self._in_folder(run)

    def _changes(self, request: Mapping[str, Any]) -> Any:
        return self._in_folder(lambda folder: changed_under_load(self._session, self._slots, folder, request))

    def _in_folder(self, run: Callable[[Path], Any]) -> Any:
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        folder.mkdir()
        try:
            return run(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--slots", type=int, default=22)
    asked = parser.parse_args()
    with ending_at_once():
        serve(True, Worker(asked).answer)


if __name__ == "__main__":
    main()
