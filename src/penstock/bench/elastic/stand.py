"""Where runs take place: a cluster, a broker and a driver of their own for each, and nothing left behind."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.bench.elastic.cluster_session import WORKER_MEMORY
from penstock.bench.elastic.messages import Collector, Counted, counted
from penstock.bench.elastic.pauses import Pause, pauses_of, peak_use
from penstock.bench.elastic.scale import LABELS, Scale
from penstock.bench.workers import Worker
from penstock.spark.cluster.standalone import StandaloneCluster, WorkerSize
from penstock.workloads.rabbitmq import RabbitMQ
from penstock.workloads.wordcount import Sentences

SEED = 1
TOLD_EVERY_SECONDS = 20.0
GRACE_SECONDS = 30.0
PEAK_MINUTES = 4.0
Beside = Callable[[StandaloneCluster, Path, threading.Event], object]
"""What happens to a cluster while a run goes on; told where the driver's files are, and when it is over."""


@dataclass(frozen=True)
class Run:
    """One run, from the beginning of its ramp on."""

    scenario: str
    scale: Scale
    counted: Counted
    samples: Sequence[Mapping[str, Any]] = field(repr=False)
    """Looks at slots, nodes and rows that wait; `at` is in seconds of the ramp."""
    changes: Sequence[Mapping[str, Any]] = field(repr=False)
    """Of slots and nodes, `at` as above."""
    pauses: Sequence[Pause] = field(repr=False)
    """Of each division of state; slots of stages without it change between two turns."""
    began: float = 0.0
    """When the ramp began, by the clock."""
    peak_use: float = 0.0
    """Of the busiest stage's slots at the peak, the share of time that they had turns."""

    @property
    def label(self) -> str:
        return LABELS[self.scenario]


@contextmanager
def cluster_of(folder: Path, nodes: int, say: Callable[[str], None]) -> Iterator[StandaloneCluster]:
    """A cluster that is there, and gone afterwards with all that was added to it."""
    cluster = StandaloneCluster(folder)
    say(f"  starting {nodes} workers")
    try:
        cluster.up([WorkerSize(memory=WORKER_MEMORY)] * nodes, limit_seconds=300.0)
        yield cluster
    finally:
        cluster.down()


class Stand:
    """Runs scenarios one after the other."""

    def __init__(self, folder: Path, broker: RabbitMQ, scale: Scale, say: Callable[[str], None]):
        self._folder, self._broker, self.scale, self.say = folder, broker, scale, say

    def run(self, scenario: str, scale: Scale | None = None, beside: Beside | None = None) -> Run:
        """From a cluster that starts to the last message; `beside` is called with it, in another thread."""
        scale, name = scale or self.scale, f"{scenario}-{uuid.uuid4().hex[:6]}"
        folder = self._folder / name
        (folder / "driver").mkdir(parents=True)
        self.say(f"{LABELS[scenario]}")
        collector = Collector(self._broker, name)
        try:
            with (
                cluster_of(folder / "cluster", scale.first_nodes(scenario), self.say) as cluster,
                Worker("penstock.bench.elastic.worker", folder / "driver") as driver,
                self._told(folder / "driver", collector),
                _beside(beside, cluster, folder / "driver"),
            ):
                driver.ready()
                told = driver.ask(
                    scenario=scenario,
                    scale=scale.to_json(),
                    cluster=str(cluster.folder),
                    port=self._broker.port,
                    queue=name,
                    seed=SEED,
                )
                if not told["drained"]:
                    self.say("  it did not end in time: what is missing counts as lost")
                sent = sum(Sentences(SEED).counts(told["phases"][-1]["sent"]).values())
                collector.wait_for(sent, GRACE_SECONDS)
        finally:
            collector.close()
        return _made(scenario, scale, folder / "driver", told, collector.messages)

    @contextmanager
    def _told(self, folder: Path, collector: Collector) -> Iterator[None]:
        """Says how far a run is, now and then."""
        stopping = threading.Event()

        def tell() -> None:
            while not stopping.wait(TOLD_EVERY_SECONDS):
                if looks := lines_of(folder / "samples.jsonl"):
                    last = looks[-1]
                    slots = ", ".join(f"{each.rpartition('.')[2]} {k}" for each, k in last["slots"].items())
                    waiting = sum(last["waiting"].values())
                    self.say(
                        f"  {len(collector.messages)} messages; {slots}; {last['nodes']} nodes; "
                        f"{waiting} rows wait"
                    )

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(5)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a file that are whole."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _made(
    scenario: str,
    scale: Scale,
    folder: Path,
    told: Mapping[str, Any],
    messages: Sequence[tuple[float, str]],
) -> Run:
    phases = told["phases"]
    began = phases[-1]["began"]
    turns = lines_of(folder / "turns.jsonl")
    samples = [{**each, "at": each["at"] - began} for each in lines_of(folder / "samples.jsonl")]
    return Run(
        scenario,
        scale,
        counted(messages, Sentences(SEED), phases, scale.ramp, scale.tick),
        [each for each in samples if 0.0 <= each["at"] <= scale.ramp.seconds],
        [{**each, "at": each["at"] - began} for each in told["changes"] if each["at"] >= began],
        pauses_of([each for each in told["slots"] if each["at"] >= began], turns),
        began,
        peak_use(turns, began + scale.ramp.seconds / 2, PEAK_MINUTES * scale.minute),
    )


@contextmanager
def _beside(beside: Beside | None, cluster: StandaloneCluster, folder: Path) -> Iterator[None]:
    """Runs something beside a run; what it raises is raised at the end."""
    if beside is None:
        yield
        return
    stopping = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(beside, cluster, folder, stopping)
        try:
            yield
        finally:
            stopping.set()
        done.result()
