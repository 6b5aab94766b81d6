"""One run of WordCount on a cluster, in the driver's process: fed, watched, and drained."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock import Engine, Spool, sinks, sources
from penstock.bench.elastic.cluster_session import WORKER_MEMORY, await_executors, session_on
from penstock.bench.elastic.scale import PIPELINE, Scale
from penstock.errors import PenstockError
from penstock.measure.turns import TurnRecord
from penstock.operators.emulate import service
from penstock.plan.elastic import Elasticity
from penstock.spark.cluster.standalone import StandaloneCluster
from penstock.spark.elastic import ElasticSettings
from penstock.spark.feeders import wait_for
from penstock.workloads.wordcount import SCHEMA, Ramp, RampFeeder, Sentences, word_count

log = logging.getLogger(__name__)
LOOK_SECONDS = 0.25
DRAIN_SECONDS = 120.0
SAMPLES, TURNS = "samples.jsonl", "turns.jsonl"


class WordCountRun:
    """An engine with the pipeline on it, from its start to its end; every look is a line of a file."""

    def __init__(self, folder: Path, asked: Mapping[str, Any]):
        self._folder, self._asked = folder, asked
        self._scale = Scale(**asked["scale"])
        self._cluster = StandaloneCluster(Path(asked["cluster"]))
        self._session = session_on(self._cluster.url, folder / "state")
        await_executors(self._session, self._scale.first_nodes(asked["scenario"]))
        self._sentences = Sentences(seed=asked["seed"])
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def figures(self) -> dict[str, Any]:
        """Runs it; what was sent when, and what changed. Nobody manages it while it warms up."""
        with Spool(self._folder / "input") as spool:
            with self._engine(None) as engine:
                engine.submit(self._pipeline(spool))
                first = self._feed(engine, spool, self._scale.warm_ramp, 0)
                engine.drain(DRAIN_SECONDS)
                self._warm_changes(engine)
            with self._engine(self._scale.managers(self._asked["scenario"])) as engine:
                engine.on_turn(self._turned)
                engine.submit(self._pipeline(spool))
                with self._watched(engine):
                    then = self._feed(engine, spool, self._scale.ramp, first["sent"])
                    drained = _drained(engine)
                changes = [each.to_json() for each in engine.changes() if each.kind in ("slots", "nodes")]
        kept = _lines(self._folder / "state" / "slots.jsonl")
        return {"phases": [first, then], "changes": changes, "slots": kept, "drained": drained}

    def _warm_changes(self, engine: Engine) -> None:
        """The first division of state compiles code, as the first turn does; it ends as it began."""
        name = f"{PIPELINE}.count"
        slots = engine.slots[name]
        if self._scale.managers(self._asked["scenario"]) is not None:
            for each in (slots + 1, slots):
                engine.set_slots({name: each}, "warming up")

    def _engine(self, managers: Elasticity | None) -> Engine:
        elastic = None
        if managers is not None:
            elastic = ElasticSettings(managers, self._cluster.folder, WORKER_MEMORY, time="run")
        return Engine(
            self._session,
            state=self._folder / "state",
            grain="1h",
            policy="fifo",
            state_store="rocksdb",
            elastic=elastic,
        )

    def _pipeline(self, spool: Spool) -> Any:
        scale, asked = self._scale, self._asked
        return word_count(
            sources.FromSpool(spool, SCHEMA),
            sinks.RabbitMq("127.0.0.1", asked["queue"], asked["port"]),
            replicas=scale.first_replicas(asked["scenario"]),
            work={name: service(seconds) for name, seconds in scale.service.items()},
        )

    def _feed(self, engine: Engine, spool: Spool, ramp: Ramp, first: int) -> dict[str, Any]:
        """Sends a ramp; when it began, its first sentence, and the one after its last."""
        feeder = RampFeeder(spool, self._sentences, ramp, first=first, tick_seconds=self._scale.tick)
        feeder.start()
        self._until_fed(engine, feeder, ramp)
        return {"began": feeder.began, "first": first, "sent": feeder.sent}

    def _until_fed(self, engine: Engine, feeder: RampFeeder, ramp: Ramp) -> None:
        def over() -> bool:
            failed = engine.error(PIPELINE) or feeder.error
            if failed is not None:
                raise PenstockError(f"the run must go on, but {failed}: nothing was measured")
            return feeder.done

        wait_for(over, ramp.seconds + DRAIN_SECONDS, 0.1)
        feeder.stop()

    @contextmanager
    def _watched(self, engine: Engine) -> Iterator[None]:
        watch = threading.Thread(target=self._watch, args=(engine,), daemon=True)
        watch.start()
        try:
            yield
        finally:
            self._stopping.set()
            watch.join(10)

    def _watch(self, engine: Engine) -> None:
        with (self._folder / SAMPLES).open("w") as file:
            while not self._stopping.wait(LOOK_SECONDS):
                try:
                    file.write(json.dumps(self._look(engine)) + "\n")
                    file.flush()
                except Exception:
                    # The next look may do: without any a whole run would have no figures.
                    log.exception("a look at the run failed")

    def _look(self, engine: Engine) -> dict[str, Any]:
        workers = [each for each in self._cluster.workers() if each.process is not None]
        return {
            "at": time.time(),
            "slots": engine.slots,
            "pool": engine.pool_slots,
            "nodes": len(workers),
            "waiting": {each.stage: each.figures.rows_waiting for each in engine.stages()},
        }

    def _turned(self, record: TurnRecord) -> None:
        with self._lock, (self._folder / TURNS).open("a") as file:
            file.write(json.dumps(record.to_json()) + "\n")


def _drained(engine: Engine) -> bool:
    """Whether all came out; the run is told all the same, with what is missing as lost."""
    try:
        engine.drain(DRAIN_SECONDS)
    except PenstockError:
        log.exception("the run did not drain")
        return False
    return True


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
