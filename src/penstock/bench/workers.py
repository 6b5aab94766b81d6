"""Processes that measure: started, asked one question a line, and ended together with their JVM."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.errors import PenstockError

LOG_LINES = 15


class WorkerFailed(PenstockError):
    """A worker that ended without an answer."""

    def __init__(self, module: str, code: int | None, log: str):
        self.module = module
        super().__init__(
            f"{module} must answer, but ended with exit code {code}: nothing was measured. It said:\n{log}"
        )


class Worker:
    """`python -m module` in a process group of its own. Its first line says that it is ready."""

    def __init__(self, module: str, folder: Path, *arguments: str):
        self.module = module
        self._log = folder / f"{'-'.join([module.rpartition('.')[2], *arguments]).replace('--', '')}.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, "--folder", str(folder), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ready(self) -> Any:
        """Waits for its first line."""
        return self._answer()

    def ask(self, **request: Any) -> Any:
        """Sends a request and waits for the answer."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise WorkerFailed(self.module, code, "\n".join(self._log.read_text().splitlines()[-LOG_LINES:]))
        return json.loads(line)

    def close(self) -> None:
        """Ends the process and all that it started: its queries rest in callbacks that nothing will wake."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(ready: Any, answer: Callable[[Mapping[str, Any]], Any]) -> None:
    """The worker's side: answers requests until its input ends."""
    print(json.dumps(ready), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """An error ends the worker at once: queries that wait in callbacks would keep the process from ending."""
    try:
        yield
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
