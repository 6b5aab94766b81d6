"""Runs loads on sides, one at a time; each side is a process with a JVM of its own, warm between loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.bench.tenants.load import Load
from penstock.bench.tenants.realtime import SLOTS_A_QUERY
from penstock.bench.tenants.runs import Run
from penstock.bench.tenants.side import REAL_TIME
from penstock.bench.workers import Worker
from penstock.workloads.tenants.groups import ArrivalName, Job, bulk_jobs, urgent_jobs

MODULE = "penstock.bench.tenants.worker"
SLOTS = 2
# Far over what any side can do: rows done then tell where to begin.
FLOOD_ROWS = 1_000_000.0
HEAT_ROWS = 100_000.0
STEP = 0.1
GROWTH_SECONDS = 1.0
MOST_STEPS = 8


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
    runs: list[Run] = field(default_factory=list)
    real_time_said: dict[str, dict[str, str]] = field(default_factory=dict)
    """By query and form, what Spark said when it was tried in real-time mode; "" where it took it."""
    _workers: dict[tuple[str, int], Worker] = field(default_factory=dict)

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
        chosen = times or self.times
        answer = self._ask(self._worker(side, slots), load, chosen)
        made = Run.of(side, load, slots, answer)
        self.runs.append(made)
        what = f"{load.bulk_rows_per_second:,.0f} bulk rows/s" if load.bulk_rows_per_second else "no bulk"
        named = f"{side}, {load.policy}" if side == "ours" else side
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
        flood = self.run("fifo", self.mixed(FLOOD_ROWS), times=Times(self.times.flood / 2, self.times.flood))
        rate = _rounded(rows_done_per_second(flood))
        return search(rate, self._bears)

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
    """The highest rate held, in steps of a tenth of where it begins; the least tried where none is.

    >>> search(100.0, lambda rate: rate <= 121)
    120.0
    >>> search(100.0, lambda rate: rate <= 79)
    70.0
    """
    step = rate * STEP
    if held(rate):
        for _ in range(MOST_STEPS):
            if not held(rate + step):
                break
            rate += step
        return rate
    for _ in range(MOST_STEPS):
        rate -= step
        if held(rate):
            break
    return rate


def _rounded(rate: float) -> float:
    """To two digits, so that figures can be spoken of."""
    digits = 10 ** max(len(str(int(rate))) - 2, 0)
    return float(max(round(rate / digits), 1) * digits)
