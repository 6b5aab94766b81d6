"""What a long command does when it is told to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM raise KeyboardInterrupt and nothing else, so that what was started is ended too.

    Spark's own answer to Ctrl-C cancels all jobs, which would fail the turns that run.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
