"""Kills the driver again and again, lets it finish, and counts what its sinks hold against the trace.

The worker is a process group of its own (Python and its JVM), killed as a whole with SIGKILL.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from penstock.bench.crash_trace import Comparison, TraceSettings, compare, expected, trace_lines
from penstock.bench.crash_worker import found, write_trace
from penstock.bench.result import BenchResult, BenchSettings, Plot, Table, at_least, at_most
from penstock.bench.stats import single, summary
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Moment = Literal["opening", "submitting", "turn"]
WORDS = {"opening": "while starting", "submitting": "in recovery", "turn": "running"}
ROWS_PER_SECOND = 2000.0
MARKER_SECONDS = 180.0
FINISH_SECONDS = 600.0


class WorkerEnded(PenstockError):
    """The worker ended by itself, or did not get as far as it should."""

    def __init__(self, what: str, log: Path):
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else ""
        super().__init__(f"the worker must run until it is killed, but {what}; its last words:\n{tail}")


@dataclass(frozen=True)
class Kill:
    """`seconds` after the worker's first line of that kind."""

    after: Moment
    seconds: float


def plan_kills(count: int, seed: int) -> list[Kill]:
    """Mostly while turns run, every fourth during recovery, every tenth while the process starts."""
    chance = random.Random(seed)
    kills = []
    for number in range(count):
        if number % 10 == 7:
            kills.append(Kill("opening", chance.uniform(0.0, 8.0)))
        elif number % 4 == 2:
            kills.append(Kill("submitting", chance.uniform(0.0, 2.5)))
        else:
            kills.append(Kill("turn", chance.uniform(0.0, 6.0)))
    return kills


def trace_settings(kills: list[Kill], seed: int) -> TraceSettings:
    """A trace that is longer than all lives before the last together."""
    seconds = 15 + sum(kill.seconds for kill in kills if kill.after != "opening") + 2 * len(kills)
    return TraceSettings(int(seconds * ROWS_PER_SECOND), ROWS_PER_SECOND, seed)


@dataclass
class Life:
    """One life of the worker, from its start to its end."""

    folder: Path
    arguments: tuple[str, ...] = (str(ROWS_PER_SECOND),)
    module: str = "penstock.bench.crash_worker"
    started: float = field(default_factory=time.monotonic)
    first_turn_seconds: float | None = None
    rows: int = 0

    def __post_init__(self) -> None:
        self._log = self.folder / "worker.log"
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.module, str(self.folder), *self.arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
                env=_environment(self.folder),
            )
        assert self._process.stdout is not None
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()

    def _listen(self, out: IO[str]) -> None:
        for line in out:
            self._lines.put(line.strip())
        self._lines.put(None)

    def until(self, word: str, limit_seconds: float) -> str:
        """Returns the worker's line when it has said `word` as the first of it."""
        limit = time.monotonic() + limit_seconds
        while True:
            try:
                line = self._lines.get(timeout=max(limit - time.monotonic(), 0.01))
            except queue.Empty:
                raise WorkerEnded(f"did not say {word!r} in {limit_seconds:g} s", self._log) from None
            if line is None:
                raise WorkerEnded(f"it ended with code {self._process.wait()}", self._log)
            self._note(line)
            if line.split()[:1] == [word]:
                return line

    def _note(self, line: str) -> None:
        words = line.split()
        if len(words) == 2 and words[0] == "turn":
            self.rows = int(words[1])
            if self.first_turn_seconds is None:
                self.first_turn_seconds = time.monotonic() - self.started

    def kill(self) -> None:
        """Ends the worker and its JVM at once; what it said before that is still heard."""
        if self._process.poll() is not None:
            raise WorkerEnded(f"it ended with code {self._process.returncode}", self._log)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        while (line := self._lines.get(timeout=10)) is not None:
            self._note(line)

    def end(self) -> None:
        """Leaves no process behind, however the bench ends."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """Whatever a killed JVM leaves behind lies in the folder, and goes with it."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return {
        **os.environ,
        "TMPDIR": str(scratch),
        "SPARK_LOCAL_DIRS": str(scratch),
        "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={scratch}",
    }


@dataclass(frozen=True)
class Ordeal:
    """What became of the pipeline."""

    comparison: Comparison
    lives: list[Life]


def run_ordeal(folder: Path, trace: TraceSettings, kills: list[Kill], say: Callable[[str], None]) -> Ordeal:
    """Kills the worker as planned, lets it finish, and compares."""
    lines = trace_lines(trace)
    write_trace(folder, lines)
    lives: list[Life] = []
    for number, kill in enumerate(kills, 1):
        lives.append(_killed_life(folder, kill))
        taken = sum(life.rows for life in lives)
        words = f"{WORDS[kill.after]}, after {kill.seconds:.1f} s"
        say(f"kill {number} of {len(kills)} ({words}), {taken:,} of {trace.rows:,} rows so far")
    say("last life: runs to the end of the trace")
    lives.append(_whole_life(folder))
    say("comparing the sinks with the trace")
    return Ordeal(compare(expected(lines), found(folder)), lives)


def _killed_life(folder: Path, kill: Kill) -> Life:
    life = Life(folder)
    try:
        life.until(kill.after, MARKER_SECONDS)
        time.sleep(kill.seconds)
        life.kill()
    finally:
        life.end()
    return life


def _whole_life(folder: Path) -> Life:
    life = Life(folder)
    try:
        life.until("drained", FINISH_SECONDS)
    finally:
        life.end()
    return life


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=None, help="how often (default: 20, with --quick 4)")
    parser.add_argument("--seed", type=int, default=1, help="fixes the trace and the moments")
    parser.add_argument("--keep", action="store_true", help="keep the state directory, sinks and log")


def run(settings: BenchSettings) -> BenchResult:
    """The figures `lost`, `doubled`, `wrong_windows`, `kills` and `recovery_seconds`."""
    count = settings.option("kills") or (4 if settings.quick else 20)
    seed = settings.option("seed", 1)
    kills = plan_kills(count, seed)
    trace = trace_settings(kills, seed)
    folder = Path(tempfile.mkdtemp(prefix="penstock-crash-"))
    settings.say(f"state and sinks in {folder}")
    try:
        ordeal = run_ordeal(folder, trace, kills, settings.say)
    finally:
        if not settings.option("keep", False):
            shutil.rmtree(folder, ignore_errors=True)
    result = _result(ordeal, kills, trace)
    if not settings.quick:
        result.marks["kills"] = at_least(20)
    return result


def _result(ordeal: Ordeal, kills: list[Kill], trace: TraceSettings) -> BenchResult:
    starts = [life.first_turn_seconds for life in ordeal.lives if life.first_turn_seconds is not None]
    result = BenchResult("crash")
    result.put("lost", single(ordeal.comparison.lost), at_most(0))
    result.put("doubled", single(ordeal.comparison.doubled), at_most(0))
    result.put("wrong_windows", single(ordeal.comparison.wrong_windows), at_most(0))
    result.put("kills", single(len(kills)))
    result.put("recovery_seconds", summary(starts))
    result.setup["trace_rows"] = trace.rows
    result.setup["rows_per_second"] = trace.rows_per_second
    result.setup["moments"] = [f"{WORDS[kill.after]}, after {kill.seconds:.2f} s" for kill in kills]
    shown = [[WORDS[kind], str(sum(kill.after == kind for kill in kills))] for kind in WORDS]
    result.tables.append(Table("moments of the kills", ("moment", "kills"), shown))
    result.plots.append(Plot("lives", lambda figure: _draw(figure, ordeal)))
    return result


def _draw(figure: Figure, ordeal: Ordeal) -> None:
    """Rows taken from the source by the end of each life."""
    axes = figure.subplots()
    totals = [sum(life.rows for life in ordeal.lives[: at + 1]) for at in range(len(ordeal.lives))]
    axes.bar(range(1, len(totals) + 1), totals, color="#4477aa")
    axes.set_xlabel("life of the driver (all but the last ended by SIGKILL)")
    axes.set_ylabel("rows taken from the source")
    gone = ordeal.comparison
    axes.set_title(f"{len(totals) - 1} kills: {gone.lost} rows lost, {gone.doubled} doubled")
