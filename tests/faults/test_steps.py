"""A turn that breaks off before or after any of its steps: resumed, it loses and doubles nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.faults.flows import Flow, go_on, rows_to_feed
from tests.spark.conftest import EngineFactory, SpoolFactory

from penstock.queues.journal import Journal
from penstock.queues.spool import Spool
from penstock.spark.ends import FolderEnd, QueueEnd
from penstock.spark.inputs import QueueInputs
from penstock.spark.stage_base import StageBase

pytestmark = pytest.mark.spark

STEPS: dict[str, tuple[type, str]] = {
    "take": (QueueInputs, "take"),
    "write rows to a sink": (FolderEnd, "write"),
    "write rows to a queue": (QueueEnd, "write"),
    "commit": (Journal, "write"),
    "show": (StageBase, "reveal"),
    "publish": (Spool, "publish"),
    "release": (QueueInputs, "release"),
}


class Tripwire:
    """Makes the `at`-th call of a method fail, once, before it does anything or after it has done all."""

    def __init__(self, method: Callable[..., Any], at: int, when: str):
        self._method = method
        self._left = at
        self._when = when
        self._lock = threading.Lock()
        self.tripped = False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        with self._lock:
            self._left -= 1
            trips = self._left == 0
            self.tripped |= trips
        if trips and self._when == "before":
            raise OSError("tripped before")
        result = self._method(*arguments, **named)
        if trips:
            raise OSError("tripped after")
        return result


@pytest.mark.parametrize("at", [1, 5])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_turn_that_breaks_off_is_made_good(
    engine: EngineFactory,
    spool: SpoolFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    when: str,
    at: int,
) -> None:
    owner, name = STEPS[step]
    wire = Tripwire(getattr(owner, name), at, when)
    monkeypatch.setattr(owner, name, lambda *given, **named: wire(*given, **named))
    flow, runs, rows = Flow(spool(), tmp_path / "out"), engine(consumption="at-most-70"), rows_to_feed()
    flow.feed(rows)
    running = runs.submit(flow.pipeline())
    resumed = go_on(runs, running)
    assert wire.tripped
    assert resumed >= 1
    flow.check(rows)


def test_a_pipeline_stopped_and_started_again_and_again_goes_on_where_it_was(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    flow, rows = Flow(spool(), tmp_path / "out"), rows_to_feed()
    for start in range(0, len(rows), 100):
        runs = engine(consumption="at-most-70")
        flow.feed(rows[start : start + 100])
        running = runs.submit(flow.pipeline())
        if start % 200 == 0:
            go_on(runs, running)
        runs.stop()
    runs = engine()
    go_on(runs, runs.submit(flow.pipeline()))
    flow.check(rows)
