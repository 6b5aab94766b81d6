"""Runs of the Wi-Fi workflow on one side, and the search for the highest rate that is in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log
from pathlib import Path
from typing import Any

from penstock.bench.workers import Worker

MODULE = "penstock.bench.batching.worker"
IN_TIME, NEARLY = 0.999, 0.99
HEAT_RATE = 2000.0
"""So much that the JVM compiles what turns run: at 100 the first minutes measured were slower."""
STEP = 1.25
"""From one rate to the next."""
LONGEST_QUEUE = ("10", "50", "200", "500", "5000", "all")
"""N of at most N rows, of which the best counts."""


@dataclass(frozen=True)
class Side:
    """A way to size and order batches; `ask` is what the worker is told."""

    name: str
    label: str
    plain: bool
    ask: Mapping[str, Any]


def _ours(name: str, label: str, **ask: Any) -> Side:
    return Side(name, label, False, ask)


BATCHIT = _ours("batchit", "planned (BatchIT)", policy="batchit")
SINGLE = _ours(
    "single", "no batching: one row a turn, first come first served", policy="fifo", consumption="at-most-1"
)
EDGEWISE = tuple(
    _ours(
        f"edgewise-{n}",
        f"longest queue, {'all' if n == 'all' else f'at most {n}'}",
        policy="longest-queue",
        consumption=rule,
    )
    for n, rule in ((n, n if n == "all" else f"at-most-{n}") for n in LONGEST_QUEUE)
)
MICRO = tuple(
    Side(f"micro-{seconds}", f"plain Spark, every {seconds} s", True, {"trigger": f"{seconds} seconds"})
    for seconds in ("0.2", "1", "5")
)
LLF = _ours("llf", "least laxity, planned sizes", policy="llf", consumption="planned")
SIDES = {each.name: each for each in (BATCHIT, *EDGEWISE, SINGLE, *MICRO, LLF)}


@dataclass(frozen=True)
class Run:
    """What one rate on one side showed."""

    side: str
    rate: float
    in_time: float
    """The mean over products of each product's share within its target."""
    products: Mapping[str, Mapping[str, float]]
    told: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def held(self) -> bool:
        return self.in_time >= IN_TIME

    @property
    def nearly_held(self) -> bool:
        """One hiccup of the machine more than may be."""
        return IN_TIME > self.in_time >= NEARLY

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {each['in_time']:.1%}" for name, each in self.products.items())
        return f"{self.in_time:.2%} in time ({parts})"


@dataclass(frozen=True)
class Times:
    """Seconds of each part; a process that is new is warmed up for `heat`."""

    warmup: float
    measured: float
    heat: float


class Stand:
    """Runs on sides, each kind of which is a process with a JVM of its own, warm between runs."""

    def __init__(self, folder: Path, times: Times, say: Callable[[str], None], *, unfused: bool = False):
        self.times = times
        self.runs: list[Run] = []
        self._folder, self._say, self._unfused = folder, say, unfused
        self._workers: dict[tuple[bool, int], Worker] = {}

    def run(
        self,
        side: Side,
        rate: float,
        *,
        rates: Sequence[tuple[float, float]] | None = None,
        cores: int = 2,
        warmup: float | None = None,
        **more: Any,
    ) -> Run:
        """One rate, or one after the other of (rate, seconds), in a process with so many cores."""
        times = self.times
        parts = rates or [(rate, times.warmup + times.measured)]
        began = times.warmup if warmup is None else warmup
        told = self._worker(side, cores).ask(rates=parts, warmup=began, **{**side.ask, **more})
        made = Run(side.name, rate, told["in_time"], told["products"], told)
        self.runs.append(made)
        asked = "".join(f", {name} {value}" for name, value in more.items())
        self._say(f"  {side.name}{asked}, {rate:,.0f} rows/s: {made}")
        return made

    def warm(self, side: Side, cores: int, rate: float, seconds: float) -> None:
        """Runs a load that counts for nothing: the JVM goes on compiling for many minutes."""
        self._heat(self._worker(side, cores), side, rate, seconds)

    def _heat(self, worker: Worker, side: Side, rate: float, seconds: float) -> None:
        worker.ask(rates=[(rate, seconds)], warmup=seconds - 1.0, **side.ask)

    def ask(self, side: Side, cores: int, **asked: Any) -> Any:
        """What the warm process of a side answers."""
        return self._worker(side, cores).ask(**asked)

    def holds(self, side: Side, rate: float, **more: Any) -> bool:
        """Whether the rate is held; a side that nearly holds it has a second try."""
        first = self.run(side, rate, **more)
        return first.held or (first.nearly_held and self.run(side, rate, **more).held)

    def _worker(self, side: Side, cores: int) -> Worker:
        key = side.plain, cores
        if key not in self._workers:
            folder = self._folder / f"{'plain' if side.plain else 'ours'}-{cores}"
            folder.mkdir()
            asked = ["--side", "plain" if side.plain else "ours", "--cores", str(cores)]
            made = Worker(MODULE, folder, *asked, *(["--unfused"] if self._unfused else []))
            self._workers[key] = made
            made.ready()
            self._say(f"  {'plain Spark' if side.plain else 'Penstock'}, {cores} cores: warming up")
            self._heat(made, side if side.plain else BATCHIT, HEAT_RATE, self.times.heat)
        return self._workers[key]

    def close(self) -> None:
        """Ends all processes."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()


def highest_rate(first: float, held: Callable[[float], bool], *, back: int = 6, least: float = 1.0) -> float:
    """The highest rate that is held, in steps of a quarter; 0 where none is.

    From `first` one step up after the other. Where that is not held, `back` steps down, then twice as many
    and so on until one is; then by halves in between.

    >>> highest_rate(100.0, lambda rate: rate <= 160)
    156.25
    >>> round(highest_rate(100.0, lambda rate: rate <= 33))
    33
    >>> highest_rate(100.0, lambda rate: False, least=50)
    0.0
    """
    if held(first):
        step = 1
        while held(first * STEP**step):
            step += 1
        return first * STEP ** (step - 1)
    lowest = ceil(log(least / first, STEP))
    refused, step = 0, max(-back, lowest)
    while not held(first * STEP**step):
        if step == lowest:
            return 0.0
        refused, step = step, max(2 * step - back, lowest)
    while refused - step > 1:
        middle = (step + refused) // 2
        if held(first * STEP**middle):
            step = middle
        else:
            refused = middle
    return first * STEP**step
