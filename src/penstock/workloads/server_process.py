"""How a server that tests and benches have started is ended."""

from __future__ import annotations

import signal
import subprocess
from typing import Any


def end_process(process: subprocess.Popen[Any], how: signal.Signals, limit_seconds: float) -> None:
    """Sends the signal and waits for the end; one that takes too long is killed."""
    process.send_signal(how)
    try:
        process.wait(limit_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
