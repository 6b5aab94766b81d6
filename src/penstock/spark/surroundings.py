"""What the pipelines of one engine share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.measure.slot_figures import SlotMeasuring
from penstock.measure.turns import TurnRecord
from penstock.spark.change_log import ChangeLog
from penstock.spark.checkpoint import StateStore
from penstock.spark.dispatcher import Dispatcher
from penstock.spark.profiles import Profiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PipelineState = Literal["running", "paused", "failed", "stopped"]


def no_cold_tasks(stage: str) -> int:
    """Where all is one process, code is loaded once."""
    return 0


def anywhere(folder: Path, what: str) -> None:
    """Where all is one process, any folder is reached."""


@dataclass(frozen=True)
class Surroundings:
    """What all pipelines of an engine share."""

    session: SparkSession
    dispatcher: Dispatcher
    folder: Path
    fsync: bool
    queue_limit_bytes: int | None = None
    listeners: list[Callable[[TurnRecord], None]] = field(default_factory=list)
    profiles: Profiles = field(default_factory=Profiles)
    state_store: StateStore | None = None
    measuring: SlotMeasuring = SlotMeasuring()  # noqa: RUF009 -- frozen
    on_cluster: bool = False
    cold_tasks: Callable[[str], int] = no_cold_tasks
    """How many tasks of a stage have loaded code on an executor so far."""
    reach: Callable[[Path, str], None] = anywhere
    """Refuses a folder that executors do not reach; it is told what the folder is."""
    changes: ChangeLog = field(kw_only=True)
