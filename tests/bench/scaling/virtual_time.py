"""The emulated pipelines of the bench in virtual time: turns as declared, and the engine's own meters,
models and controller of slots. No Spark, and no waiting.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import floor, inf
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from penstock import sinks, sources
from penstock.bench.scaling.emulated_run import by_interval
from penstock.bench.scaling.predictions import LastRun, Predictions, Turns
from penstock.bench.scaling.stand import Stand, Times
from penstock.measure.slot_figures import SlotMeasuring
from penstock.measure.smoothing import WindowSmoothing
from penstock.measure.turns import NO_TURN_YET, TurnRecord
from penstock.plan import SlotSettings
from penstock.queues.segment import Arrivals, Segment
from penstock.spark.slot_control import SlotControl
from penstock.spark.slot_meters import SlotMeters
from penstock.spark.turn_input import Portion, TurnInput
from penstock.stages.fuse import cut
from penstock.workloads.drs import TOPOLOGIES, Inputs, Topology
from penstock.workloads.drs.topologies import CANDIDATES, TWICE_IN

TICK_SECONDS = 1.003
"""An engine keeps house so often."""
GRACE_SECONDS = 30.0

Row = tuple[int, int, int]
"""Input, part, rounds."""


@dataclass(frozen=True)
class Machine:
    """What a turn costs beside its rows: for itself and for each of its tasks, and how that varies."""

    turn_seconds: float = 0.06
    task_seconds: float = 0.003
    scv: float = 0.05
    seed: int = 1
    before_seconds: float = 1.3
    """For so long it runs before the first input is due: looks are that much off the minutes."""
    acting_seconds: float = 0.0
    """From a decision until the first turn may have other slots."""


def _rounds_of(row: Row) -> int:
    return 2 if random.Random(f"twice|{row[0]}").random() < 1 / TWICE_IN else 1


def _to_do(row: Row) -> bool:
    return row[2] < _rounds_of(row)


def _parts(parts: int) -> Callable[[str, Row], list[Row]]:
    """What `gather` makes: parts of what is new, and of what comes back that which is not done."""

    def made(producer: str, row: Row) -> list[Row]:
        if producer.endswith((".detect", ".work")):
            return [row] if _to_do(row) else []
        return [(row[0], part, 0) for part in range(parts)]

    return made


def _again(producer: str, row: Row) -> list[Row]:
    return [(row[0], row[1], row[2] + 1)]


def _done(producer: str, row: Row) -> list[Row]:
    return [] if _to_do(row) else [row]


RULES: Mapping[tuple[str, str], Callable[[str, Row], list[Row]]] = {
    ("fpd", "gather"): _parts(CANDIDATES),
    ("fpd", "detect"): _again,
    ("fpd", "report"): _done,
    ("loop", "gather"): _parts(1),
    ("loop", "work"): _again,
    ("loop", "check"): _done,
    ("two-path", "left"): lambda producer, row: [row] if random.Random(row[0]).random() < 0.5 else [],
    ("two-path", "right"): lambda producer, row: [] if random.Random(row[0]).random() < 0.5 else [row],
}
"""What a stage makes of a row, where that is not the row itself."""


@dataclass
class VirtualStage:
    """A stage as the meters and the controller know it, with what waits for it."""

    name: str
    slots: int
    place: Any = field(
        default_factory=lambda: SimpleNamespace(profiles=SimpleNamespace(of=lambda name: None))
    )
    waiting: list[tuple[str, Segment, list[Row]]] = field(default_factory=list)
    busy: bool = False
    batch: int = -1
    last_end: float = NO_TURN_YET
    slots_may_change: bool = True


class VirtualRun:
    """One request of the bench, as `EmulatedRun` answers it."""

    state, error = "running", None

    def __init__(
        self, request: Mapping[str, Any], machine: Machine, earlier: Mapping[str, Turns] | None = None
    ):
        self._asked, self._machine = request, machine
        topology = TOPOLOGIES[request["topology"]].with_work(request.get("work", 1.0))
        scv = request.get("scv")
        self._topology: Topology = topology if scv is None else topology.with_scv(scv)
        self.name = self._topology.name
        source = sources.Replay(pa.table({"input": [0]}), 1.0)
        pipeline = self._topology.pipeline(
            source, sinks.Callback(lambda table, batch: None), request["slots"]
        )
        self._graph = cut(pipeline)
        window = int(request.get("window", 3))
        measuring = SlotMeasuring(request["interval"], smoothing=lambda: WindowSmoothing(window))
        self.meters = SlotMeters(self._graph, -machine.before_seconds, measuring)
        self.stages = [
            VirtualStage(each.name, request["slots"][each.name.rpartition(".")[2]])
            for each in self._graph.stages
        ]
        self._by_name = {each.name: each for each in self.stages}
        self._chance = random.Random(machine.seed)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order, self._sequence = count(), count()
        self._now = -machine.before_seconds
        self._left: dict[int, int] = {}
        self._done: dict[int, float] = {}
        self._lines: list[dict[str, Any]] = []
        self._meter_seconds: list[float] = []
        self.predictions = Predictions(earlier)
        given = request.get("control")
        settings = SlotSettings(**given) if given else None
        self._control = SlotControl(settings, self, self)  # type: ignore[arg-type]

    def clock(self) -> float:
        return self._now

    def submit(self, action: Callable[[], None]) -> None:
        """As a dispatcher."""
        self._at(self._now + self._machine.acting_seconds, action)

    def keep(self, line: Any) -> None:
        """As a rescaler keeps its decisions."""
        self._lines.append(line.to_json())

    def apply(self, pipelines: Any, wanted: Mapping[str, int], reason: str) -> None:
        """As a rescaler: from the next turn on."""
        for name, slots in wanted.items():
            if self._by_name[name].slots != slots:
                self._by_name[name].slots = slots
                self.meters.slots_changed(name)

    def figures(self) -> dict[str, Any]:
        rates = tuple((rate, seconds) for rate, seconds in self._asked["rates"])
        inputs = Inputs(rates, self._asked["gaps"], self._asked.get("seed", 1))
        dues = [due for due, _ in inputs.arrivals()]
        for number, due in enumerate(dues):
            self._at(due, lambda number=number: self._come(number))  # type: ignore[misc]
        self._at(self._now + TICK_SECONDS, self._look)
        self._until = inputs.seconds
        while self._agenda and self._agenda[0][0] < inputs.seconds + GRACE_SECONDS:
            self._now, _, happens = heappop(self._agenda)
            happens()
        return self._told(dues)

    def _at(self, time: float, happens: Callable[[], None]) -> None:
        heappush(self._agenda, (time, next(self._order), happens))

    def _come(self, number: int) -> None:
        queue = next(name for name, each in self._graph.queues.items() if not each.producers)
        self._left[number] = self._topology.results
        segment = self._segment("inputs", next(self._sequence), 1, Arrivals.at(self._now, 1))
        self._put(queue, segment, [(number, 0, 0)])

    def _segment(self, producer: str, batch: int, rows: int, arrivals: Arrivals) -> Segment:
        return Segment(next(self._sequence), producer, batch, (), (), rows, arrivals, self._now)

    def _put(self, queue: str, segment: Segment, rows: list[Row]) -> None:
        for name in self._graph.queues[queue].consumers:
            stage = self._by_name[name]
            self.meters.arrived(name, queue, segment)
            stage.waiting.append((queue, segment, rows))
            self._begin(stage)

    def _begin(self, stage: VirtualStage) -> None:
        if stage.busy or not stage.waiting:
            return
        short = stage.name.rpartition(".")[2]
        took, slots = self._taken(stage, self._topology.stages[short].row_seconds), stage.slots
        stage.busy = True
        rule = RULES.get((self.name, short), lambda producer, row: [row])
        made = [each for _, segment, rows in took for row in rows for each in rule(segment.producer, row)]
        end, granted = self._now + self._turn_seconds(short, made, slots), self._now
        self._at(end, lambda: self._end(stage, took, made, granted, slots))

    def _taken(self, stage: VirtualStage, row_seconds: float) -> list[tuple[str, Segment, list[Row]]]:
        """All that waits, but no more rows than take T_max where slots are controlled for one."""
        grain = (self._asked.get("control") or {}).get("target_seconds", inf)
        left = max(floor(grain * stage.slots / row_seconds), 1) if row_seconds and grain < inf else inf
        took = []
        while stage.waiting and left > 0:
            queue, segment, rows = stage.waiting.pop(0)
            if len(rows) > left:
                stage.waiting.insert(0, (queue, segment, rows[int(left) :]))
                rows = rows[: int(left)]
            took.append((queue, segment, rows))
            left -= len(rows)
        return took

    def _turn_seconds(self, short: str, made: Sequence[Row], slots: int) -> float:
        machine, declared = self._machine, self._topology.stages[short]
        fixed = machine.turn_seconds + machine.task_seconds * min(slots, max(len(made), 1))
        fixed *= self._chance.gammavariate(1.0 / machine.scv, machine.scv)
        tasks = [0.0] * slots
        for place, row in enumerate(made):
            tasks[place % slots] += declared.row_seconds * self._drawn(short, row, declared.scv)
        return fixed + max(tasks)

    @staticmethod
    def _drawn(short: str, row: Row, scv: float) -> float:
        return random.Random(f"{short}|{row}").gammavariate(1.0 / scv, scv) if scv else 1.0

    def _end(
        self,
        stage: VirtualStage,
        took: list[tuple[str, Segment, list[Row]]],
        made: list[Row],
        granted: float,
        slots: int,
    ) -> None:
        stage.batch += 1
        last = stage.waiting[0][1] if stage.waiting else None
        portions = tuple(
            Portion(
                len(rows), each.arrivals.scaled(len(rows)), each.published, {}, queue, each, each is not last
            )
            for queue, each, rows in took
        )
        given, now = TurnInput(portions), self._now
        self.meters.passed(stage.name, given, stage.batch, len(made), now)
        times = given.times(stage.last_end, granted, now)
        self.meters.ended(
            TurnRecord(
                stage.name,
                self.name,
                stage.batch,
                "direct",
                slots,
                granted,
                now,
                given.rows,
                len(made),
                *times,
            )
        )
        stage.busy, stage.last_end = False, now
        output = self._graph.stage(stage.name).output
        if output is None:
            self._arrived(made)
        elif made:
            arrivals = given.arrivals.scaled(len(made))
            self._put(output, self._segment(stage.name, stage.batch, len(made), arrivals), made)
        self._begin(stage)

    def _arrived(self, rows: list[Row]) -> None:
        for number, _, _ in rows:
            self._left[number] -= 1
            if not self._left[number]:
                self._done[number] = self._now

    def _look(self) -> None:
        self._control.look(self._now, [self])  # type: ignore[list-item]
        if not self._asked.get("control") and self.predictions.learn(self.meters.figures):
            figures = self.meters.figures
            if figures is not None and figures.inputs.inputs_done and self._now > self._asked["warmup"]:
                self._meter_seconds.append(figures.inputs.mean_seconds)
        if self._now < self._until:
            self._at(self._now + TICK_SECONDS, self._look)

    def _told(self, dues: Sequence[float]) -> dict[str, Any]:
        sojourns = [(due, self._done.get(number, self._now) - due) for number, due in enumerate(dues)]
        return {
            "sojourn_seconds": fmean(seconds for due, seconds in sojourns if due >= self._asked["warmup"]),
            "meter_seconds": fmean(self._meter_seconds) if self._meter_seconds else None,
            "models": {},
            "by_interval": by_interval(sojourns, self._asked["interval"]),
            "decisions": self._lines,
        }


class VirtualStand(Stand):
    """Runs in virtual time; whatever the bench asks is answered as its worker does."""

    def __init__(self, times: Times, machine: Machine | None = None):
        super().__init__(Path(), times, lambda text: None)
        self._machine = machine or Machine()
        self._last = LastRun()

    def ask(self, **request: Any) -> Any:
        known = self._last.predictions
        if request["do"] == "plan":
            return known.plans(request["most_slots"])
        if request["do"] == "predict":
            return [known.seconds(each, request.get("spell")) for each in request["allocations"]]
        run = VirtualRun(request, self._machine, self._last.earlier_turns(request))
        told = run.figures()
        self._last.keep(request, run.predictions)
        return told
