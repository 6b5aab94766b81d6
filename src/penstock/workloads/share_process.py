"""Starts a side of the shared pool as a process of its own, follows it, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import penstock
from penstock.errors import PenstockError
from penstock.workloads.share_run import Event, ShareRun

WORKER = "penstock.workloads.share_worker"
START_SECONDS = 180.0
GONE_SECONDS = 5.0
TAIL_LINES = 15


class SideFailed(PenstockError):
    """A side's process ended, or told of an error, before its time was over."""


class SideProcess:
    """A worker with its JVM, in a process group and a temporary directory of their own; both go with it."""

    def __init__(self, side: str, seconds: float):
        self._side = side
        self._temporary = tempfile.TemporaryDirectory(prefix="penstock-share-", ignore_cleanup_errors=True)
        folder = Path(self._temporary.name)
        (folder / "tmp").mkdir()
        self._log = folder / "log"
        command = [sys.executable, "-m", WORKER, "--side", side, "--seconds", f"{seconds:g}"]
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, "--folder", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=_environment(folder),
                start_new_session=True,  # Ctrl-C is for the one who started it, who then ends all of it
            )
        self._events: queue.Queue[Event | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._events.put(json.loads(line))
        self._events.put(None)

    def events(self, tick_seconds: float) -> Iterator[Event | None]:
        """Its events until it ends; None when a tick has passed without one."""
        limit = time.monotonic() + START_SECONDS
        while True:
            try:
                event = self._events.get(timeout=tick_seconds)
            except queue.Empty:
                if time.monotonic() > limit:
                    raise SideFailed(self._text(f"told nothing for {START_SECONDS:g} s")) from None
                yield None
                continue
            if event is None:
                return
            limit = time.monotonic() + START_SECONDS
            yield event

    def failure(self, why: str) -> SideFailed:
        """An error with the end of what the worker and Spark wrote."""
        return SideFailed(self._text(why))

    def _text(self, why: str) -> str:
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
        text = f"the side {self._side!r} must run to its end, but {why}: there are no figures of it."
        return f"{text}\n{tail}".strip()

    def close(self) -> None:
        """Ends the worker and its JVM at once, and removes their files."""
        group = self._process.pid
        _signal(group, signal.SIGKILL)
        self._process.wait()
        limit = time.monotonic() + GONE_SECONDS
        while _signal(group, 0) and time.monotonic() < limit:
            time.sleep(0.02)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _signal(group: int, number: int) -> bool:
    """Whether there was anything left in the group to signal."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _environment(folder: Path) -> dict[str, str]:
    """Ours, with every temporary file in the folder, and this very package found from there."""
    package = str(Path(penstock.__file__).parents[1])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    java = f"-Djava.io.tmpdir={folder / 'tmp'} {os.environ.get('JDK_JAVA_OPTIONS', '')}".strip()
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "TMPDIR": str(folder / "tmp"),
        "JDK_JAVA_OPTIONS": java,
    }


def run_side(
    run: ShareRun, seconds: float, *, on_tick: Callable[[ShareRun], None], tick_seconds: float
) -> ShareRun:
    """Runs a side for the warm-up and `seconds`, and fills `run`; `on_tick` is called about every tick."""
    ticked = time.monotonic()
    with SideProcess(run.side.key, run.warmup_seconds + seconds) as process:
        for event in process.events(tick_seconds):
            if event is not None:
                run.take(event)
            if run.error:
                raise process.failure(run.error)
            if time.monotonic() >= ticked + tick_seconds:
                ticked = time.monotonic()
                on_tick(run)
        if run.ended_at is None:
            raise process.failure("its process ended early")
    return run
