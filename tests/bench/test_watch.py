"""The parts of the bench of watching that need no Spark."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tests.dashboard.fakes import FakeEngine
from tests.spark.conftest import eventually

from penstock.bench.watch import scraper, viewer
from penstock.bench.watch_worker import watching_seconds
from penstock.dashboard import Dashboard, Watch


def test_a_viewer_gets_a_large_frame_and_then_small_ones(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path)
    engine.advance(20)
    with Watch(engine, clock=engine.clock) as watch, Dashboard(watch, port=0) as page:
        with viewer(page.address) as sizes:
            eventually(lambda: len(sizes) > 0)
            engine.advance(1)
            watch.fresh(0)
            eventually(lambda: len(sizes) > 1)
        # All of it again would be more than the first frame; what changes in a look hangs on when it came.
        assert 0 < sizes[1] < sizes[0] * 3 / 4


def test_metrics_are_asked_for_over_one_connection(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path)
    engine.advance(5)
    with Watch(engine, clock=engine.clock) as watch, Dashboard(watch, port=0) as page:
        with scraper(page.address, every_seconds=0.01) as sizes:
            eventually(lambda: len(sizes) > 2)
            serving = [each for each in threading.enumerate() if "process_request_thread" in each.name]
        assert len(serving) == 1
        assert min(sizes) > 1000


def test_the_time_of_the_threads_that_watch_is_counted_and_no_other() -> None:
    before, stop = watching_seconds(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            sum(range(1000))

    def other() -> float:
        began = time.process_time()
        while time.process_time() < began + 0.3:
            sum(range(1000))
        return watching_seconds()

    assert other() == before
    thread = threading.Thread(target=work, name="penstock-watch")
    thread.start()
    try:
        eventually(lambda: watching_seconds() >= before + 0.05)
    finally:
        stop.set()
        thread.join()
