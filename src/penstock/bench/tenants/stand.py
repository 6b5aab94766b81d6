"""Runs loads on sides, one at a time; each side is a process with a JVM of its own, warm between loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.bench.tenants.load import FairSettings, Load
from penstock.bench.tenants.realtime import SLOTS_A_QUERY
from penstock.bench.tenants.runs import Run
from penstock.bench.tenants.side import REAL_TIME
from penstock.bench.workers import Worker
from penstock.errors import PenstockError
from penstock.workloads.tenants.groups import ArrivalName, Job, bulk_jobs, urgent_jobs

MODULE = "penstock.bench.tenants.worker"
SLOTS = 2
OVERLOAD = 2.0
# Over what any side can do: rows done then tell where to begin.
FLOOD_ROWS, MOST_FLOOD_ROWS = 1_000_000.0, 8_000_000.0
FLOODED = 0.7
"""Who does more than this share of what came may have had too little to do."""
HEAT_ROWS = 100_000.0
STEP = 0.1
GROWTH_SECONDS = 1.0
MOST_STEPS_DOWN, MOST_STEPS_UP = 8, 20
FAIR_TRIED = tuple(FairSettings(weight, cap) for cap in (None, 1.0) for weight in (10, 100))


@dataclass(frozen=True)
class Times:
    """How long each part takes, in seconds. A process that is new is warmed up for `heat`."""

    warmup: float
    measured: float
    heat: float = 0.0
    flood: float = 30.0
    bear: float = 60.0


@dataclass
class Stand:
    """Where runs are made. What plain Spark can bear is searched once, when first asked for."""

    folder: Path
    times: Times
    say: Callable[[str], None]
    known_capacity: float | None = None
    sliding: bool = False
    """Whether the bulk tenants' windows slide, instead of their events being text."""
    fair_tried: tuple[FairSettings, ...] = FAIR_TRIED
    """What is tried for plain Spark's FAIR pools before they run; without any, they are as usual."""
    fair_runs: list[Run] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    real_time_said: dict[str, dict[str, str]] = field(default_factory=dict)
    """By query and form, what Spark said when it was tried in real-time mode; "" where it took it."""
    _workers: dict[tuple[str, int], Worker] = field(default_factory=dict)
    _fair: FairSettings | None = None
    _compared: int = 0

    def mixed(self, bulk_rows_per_second: float, bulk_count: int = 4) -> Load:
        """Four urgent tenants beside so many bulky ones, which share a rate."""
        return Load((*urgent_jobs(), *self.bulk_jobs(bulk_rows_per_second, bulk_count)))

    def bulk_jobs(
        self, rows_per_second: float, count: int = 4, *, arrivals: ArrivalName = "constant"
    ) -> tuple[Job, ...]:
        """The bulky tenants as they are in this bench."""
        return bulk_jobs(rows_per_second, count, arrivals=arrivals, sliding=self.sliding)

    def run(self, side: str, load: Load, *, slots: int = SLOTS, times: Times | None = None) -> Run:
        """One load on one side; raises where a value at a sink is wrong."""
        chosen = replace(load, fair=self.fair) if side == "fair" else load
        return self._run(side, chosen, slots, times or self.times)

    def compare(self, sides: Sequence[str], load: Load, *, slots: int = SLOTS) -> list[Run]:
        """One load on several sides; which of them is the first goes round, as the machine may drift."""
        first = self._compared % len(sides)
        self._compared += 1
        made = {side: self.run(side, load, slots=slots) for side in (*sides[first:], *sides[:first])}
        return [made[side] for side in sides]

    @property
    def fair(self) -> FairSettings:
        """Of those tried, the settings with the least p99 of the urgent tenants, under overload."""
        if self._fair is None:
            times = Times(self.times.warmup / 2, self.times.measured / 2)
            for each in self.fair_tried:
                load = replace(self.mixed(OVERLOAD * self.capacity), fair=each)
                self.fair_runs.append(self._run("fair", load, SLOTS, times))
            best = min(self.fair_runs, key=lambda run: (run.urgent.p99, run.urgent.p50), default=None)
            self._fair = FairSettings() if best is None else best.load.fair
            self.say(f"FAIR pools: {self._fair}")
        return self._fair

    def _run(self, side: str, load: Load, slots: int, times: Times) -> Run:
        answer = self._ask(self._worker(side, slots), load, times)
        made = Run.of(side, load, slots, answer)
        self.runs.append(made)
        what = f"{load.bulk_rows_per_second:,.0f} bulk rows/s" if load.bulk_rows_per_second else "no bulk"
        named = {"ours": f"{side}, {load.policy}", "fair": f"{side}, {load.fair}"}.get(side, side)
        self.say(f"  {named}, {what}: {made}")
        return made

    def _worker(self, side: str, slots: int) -> Worker:
        known = self._workers.get((side, slots))
        if known is not None:
            return known
        folder = self.folder / f"{side}-{slots}"
        folder.mkdir(exist_ok=True)
        made = Worker(MODULE, folder, "--side", side, "--slots", str(slots))
        self._workers[side, slots] = made
        made.ready()
        if self.times.heat and side != REAL_TIME:
            self.say(f"  {side}: warming up")
            self._ask(made, self.mixed(HEAT_ROWS), Times(self.times.heat, 1.0))
        return made

    def real_time(self, load: Load) -> Run | None:
        """The load in Spark's real-time mode, on the slots it needs; None where Spark refuses a query."""
        slots = SLOTS_A_QUERY * len(load.jobs)
        said = self._try(load, slots)
        self.real_time_said |= said
        refused = [query for query, forms in said.items() if "" not in forms.values()]
        if refused:
            self.say(f"  {REAL_TIME}: Spark refuses {', '.join(refused)}")
            return None
        # What warms up other sides when they are new is part of the run.
        longer = replace(self.times, warmup=self.times.warmup + self.times.heat)
        return self.run(REAL_TIME, load, slots=slots, times=longer)

    def _try(self, load: Load, slots: int) -> dict[str, dict[str, str]]:
        answer: dict[str, dict[str, str]] = self._worker(REAL_TIME, slots).ask(do="try", load=load.to_json())
        return answer

    @staticmethod
    def _ask(worker: Worker, load: Load, times: Times) -> Any:
        return worker.ask(do="run", load=load.to_json(), warmup=times.warmup, measured=times.measured)

    def release(self, *sides: str, slots: int | None = None) -> None:
        """Ends the processes of sides that are not needed any more, or those with so many slots.

        Each keeps gigabytes. One that is asked again starts anew.
        """
        for side, count in tuple(self._workers):
            if (not sides or side in sides) and slots in (None, count):
                self._workers.pop((side, count)).close()

    def close(self) -> None:
        """Ends all processes."""
        self.release()

    @property
    def capacity(self) -> float:
        """The highest bulk rate, in steps of a tenth, at which plain FIFO Spark's backlog stays as it is."""
        if self.known_capacity is None:
            self.known_capacity = self._search()
            self.say(f"plain Spark can bear {self.known_capacity:,.0f} bulk rows/s")
        return self.known_capacity

    def _search(self) -> float:
        self.say("how many bulk rows/s plain Spark can bear")
        return search(_rounded(self.able("fifo", self.mixed)), self._bears)

    def able(self, side: str, load_of: Callable[[float], Load]) -> float:
        """Bulk rows/s that a side does where more come than it can do."""
        rate, times = FLOOD_ROWS, Times(self.times.flood / 2, self.times.flood)
        while True:
            done = rows_done_per_second(self.run(side, load_of(rate), times=times))
            if done < FLOODED * rate or rate >= MOST_FLOOD_ROWS:
                return done
            rate *= 2

    def _bears(self, rate: float) -> bool:
        times = Times(self.times.warmup, self.times.bear)
        return bears(self.run("fifo", self.mixed(rate), times=times))


def rows_done_per_second(run: Run) -> float:
    """Bulk rows done per second of the measured part, up to the end of the last batch in it.

    A flood makes batches long: what is done of the one that runs at the end is not known.
    """
    begin = int(run.warmup)
    totals: list[float] = [
        sum(rows) for rows in zip(*(each.done_by_second[begin:] for each in run.bulk.jobs), strict=True)
    ]
    busy = max((second + 1 for second, rows in enumerate(totals) if rows), default=1)
    return sum(totals) / busy


def bears(run: Run) -> bool:
    """Whether the backlog grows by less than a second of input in a minute."""
    return run.bulk.backlog_growth_per_minute < GROWTH_SECONDS


def search(rate: float, held: Callable[[float], bool]) -> float:
    """The highest rate held, in steps of a tenth of where it begins; refuses where that is not found.

    >>> search(100.0, lambda rate: rate <= 121)
    120.0
    >>> search(100.0, lambda rate: rate <= 79)
    70.0
    """
    up = held(rate)
    for number in range(1, (MOST_STEPS_UP if up else MOST_STEPS_DOWN) + 1):
        tried = rate * (1 + number * STEP) if up else rate * (1 - number * STEP)
        if held(tried) != up:
            return rate * (1 + (number - 1) * STEP) if up else tried
    raise PenstockError(
        "what plain Spark can bear must lie within the rates tried, but it "
        f"{'held' if up else 'fell behind at'} all of them, "
        f"from {rate:,.0f} to {tried:,.0f} bulk rows/s: give it by --capacity"
    )


def _rounded(rate: float) -> float:
    """To two digits, so that figures can be spoken of."""
    digits = 10 ** max(len(str(int(rate))) - 2, 0)
    return float(max(round(rate / digits), 1) * digits)
