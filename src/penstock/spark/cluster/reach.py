"""Whether the executors reach the state directory: asked before anything is written there in earnest."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.spark.cluster.executors import Executor
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = ".reach"


class UnreachableState(PenstockError):
    """A state directory that executors do not share with the driver."""

    def __init__(self, folder: Path, places: tuple[str, ...]):
        self.folder = folder
        self.places = places
        super().__init__(
            f"the state directory must be one that every worker reads and writes, got {str(folder)!r}, which "
            f"{', '.join(places)} cannot: queues and checkpoints would be missing there. Name a shared or "
            "mounted directory under the same path on all of them"
        )


def out_of_reach(session: SparkSession, state: Path, executors: Iterable[Executor]) -> tuple[Executor, ...]:
    """The executors that do not see what the driver writes to `state`, or whose files it does not see.

    One task for each of them; one that did not get its task is not judged.
    """
    asked = {each.id: each for each in executors}
    if not asked:
        return ()
    token = uuid.uuid4().hex
    folder = state / FOLDER / token
    folder.mkdir(parents=True)
    try:
        (folder / token).touch()
        lines = "\n".join(f"{each.id} {each.host}" for each in asked.values())
        probe = jvm(session).penstock.ReachProbe
        answers = str(probe.ask(session.sparkContext._jsc.sc(), lines, str(folder), token))
        return tuple(asked[id] for id in _failed(answers, folder, token) if id in asked)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            folder.parent.rmdir()


def _failed(answers: str, folder: Path, token: str) -> list[str]:
    failed = set()
    for line in answers.splitlines():
        id, reads, writes = line.split(" ")
        if reads != "true" or writes != "true" or not (folder / f"{token}-{id}").exists():
            failed.add(id)
    return sorted(failed)
