"""Processes that measure, and what is told when one does not."""

from pathlib import Path

import pytest

from penstock.bench.workers import Worker, WorkerFailed


def test_a_worker_that_ends_without_an_answer_tells_why(tmp_path: Path) -> None:
    worker = Worker("penstock.bench.turn_worker", tmp_path, "--side", "nowhere")
    with worker, pytest.raises(WorkerFailed) as failed:
        worker.ready()
    assert "penstock.bench.turn_worker must answer, but ended with exit code 2" in str(failed.value)
    assert "invalid choice: 'nowhere'" in str(failed.value)
