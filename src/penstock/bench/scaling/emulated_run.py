"""One run of an emulated pipeline: inputs are fed when they are due, and followed until they are done."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from penstock import Engine, Spool, sinks, sources
from penstock.bench.batching.load import Feed
from penstock.bench.scaling.predictions import Predictions, Turns
from penstock.errors import PenstockError
from penstock.measure.slot_figures import SlotMeasuring
from penstock.measure.smoothing import WindowSmoothing
from penstock.measure.turns import TurnRecord
from penstock.plan import SlotSettings
from penstock.plan.slot_models import measured
from penstock.queues.segment import Arrivals
from penstock.spark.feeders import wait_for
from penstock.workloads.drs import SCHEMA, TOPOLOGIES, Finished, Inputs, Topology

GRACE_SECONDS = 30.0
LOOK_SECONDS = 0.25


class EmulatedRun:
    """A topology with given slots and inputs; with `control`, slots are the controller's to change.

    A request has `topology`, `slots`, `rates`, `gaps`, `warmup`, `interval` (T_m), and may have
    `scv`, `work`, `seed`, `window` (w) and `control` (fields of SlotSettings).
    """

    def __init__(
        self,
        session: Any,
        pool: int,
        folder: Path,
        request: Mapping[str, Any],
        earlier: Mapping[str, Turns] | None = None,
    ):
        self._session, self._pool, self._folder, self._asked = session, pool, folder, request
        topology = TOPOLOGIES[request["topology"]].with_work(request.get("work", 1.0))
        scv = request.get("scv")
        self.topology: Topology = topology if scv is None else topology.with_scv(scv)
        rates = tuple((rate, seconds) for rate, seconds in request["rates"])
        self.inputs = Inputs(rates, request["gaps"], request.get("seed", 1))
        self.predictions = Predictions(earlier)
        self._done = Finished(self.topology.results)
        self._turns: list[TurnRecord] = []
        self._lock = threading.Lock()
        self._meter_seconds: list[float] = []

    def figures(self) -> dict[str, Any]:
        """What became of the inputs, and what each stage did."""
        with Spool(self._folder / "input") as spool, self._engine() as engine:
            engine.on_turn(self._turned)
            source, sink = sources.FromSpool(spool, SCHEMA), sinks.Callback(self._done)
            running = engine.submit(self.topology.pipeline(source, sink, self._asked["slots"]))
            arrivals, base = self.inputs.arrivals(), time.time() + 1.0

            def put(table: Any, due: float) -> None:
                spool.append(table, producer="inputs", arrivals=Arrivals.at(due, table.num_rows))

            feed = Feed(arrivals, put, base)
            feed.start()
            while time.time() < base + self.inputs.seconds:
                time.sleep(LOOK_SECONDS)
                self._look(engine, base)
                if running.state == "failed" or feed.error is not None:
                    raise PenstockError(f"an emulated run must go on, but {running.error or feed.error}")
            wait_for(lambda: len(self._done.times) >= len(arrivals), GRACE_SECONDS)
            feed.stop()
            return self._told([due for due, _ in arrivals], base, feed.lag_seconds)

    def _engine(self) -> Engine:
        control, window = self._asked.get("control"), int(self._asked.get("window", 3))
        settings = None if control is None else SlotSettings(**control)
        measuring = SlotMeasuring(self._asked["interval"], smoothing=lambda: WindowSmoothing(window))
        # A turn takes all that waits: it is not cut to what takes a second. Slots that are about to change
        # are not to wait for longer than rows may take, though.
        grain = "1h" if settings is None or settings.target_seconds == inf else f"{settings.target_seconds}s"
        return Engine(
            self._session,
            state=self._folder / "state",
            slots=self._pool,
            policy="fifo",
            grain=grain,
            slot_control=settings,
            slot_measuring=measuring,
        )

    def _turned(self, record: TurnRecord) -> None:
        with self._lock:
            self._turns.append(record)

    def _look(self, engine: Engine, base: float) -> None:
        figures = engine.slot_figures().get(self.topology.name)
        if not self.predictions.learn(figures) or figures is None:
            return
        seconds, done = measured(figures)
        if figures.at > base + self._asked["warmup"] and done:
            self._meter_seconds.append(seconds)

    def _told(self, due: list[float], base: float, lag: float) -> dict[str, Any]:
        times, now = self._done.times, time.time()
        # One that is not done yet has taken at least until now.
        sojourns = [(each, times.get(place, now) - base - each) for place, each in enumerate(due)]
        counted = [seconds for each, seconds in sojourns if each >= self._asked["warmup"]]
        rows = self._done.rows()
        return {
            "sojourn_seconds": fmean(counted),
            "inputs": len(counted),
            "unfinished": sum(place not in times for place in range(len(due))),
            "doubled": sum(count > self.topology.results for count in rows.values()),
            "meter_seconds": fmean(self._meter_seconds) if self._meter_seconds else None,
            "models": self.predictions.chosen(),
            "stages": self._stages(base + self._asked["warmup"]),
            "by_interval": by_interval(sojourns, self._asked["interval"]),
            "decisions": [
                {**each, "at": each["at"] - base} for each in _lines(self._folder / "state" / "slots.jsonl")
            ],
            "feed_lag_seconds": lag,
        }

    def _stages(self, begin: float) -> dict[str, Any]:
        with self._lock:
            turns = [each for each in self._turns if each.granted_at >= begin and each.rows_in]
        found = {}
        for name in self.topology.stages:
            own = [each for each in turns if each.stage == f"{self.topology.name}.{name}"]
            rows = sum(each.rows_in for each in own)
            found[name] = {
                "turns": len(own),
                "rows": rows,
                "turn_seconds": fmean(each.turn_seconds for each in own) if own else 0.0,
            }
        return found


def by_interval(sojourns: list[tuple[float, float]], interval: float) -> list[float | None]:
    """The mean sojourn of the inputs that were due in each interval; None where none was."""
    count = int(max((due for due, _ in sojourns), default=0.0) // interval) + 1
    found: list[list[float]] = [[] for _ in range(count)]
    for due, seconds in sojourns:
        found[int(due // interval)].append(seconds)
    return [fmean(each) if each else None for each in found]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
