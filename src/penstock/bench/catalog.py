"""The benches by name. A bench is a module that is imported when it is chosen: it may import Spark."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from penstock.bench.result import BenchResult, BenchSettings
from penstock.errors import PenstockError


class BenchModule(Protocol):
    """What the module of a bench offers; `add_arguments(parser)` may be there too."""

    def run(self, settings: BenchSettings) -> BenchResult: ...


@dataclass(frozen=True)
class Bench:
    """A line of the table below."""

    module: str
    help: str


BENCHES: Mapping[str, Bench] = {
    "turns": Bench(
        "penstock.bench.turns",
        "what a turn, a hop, a held pipeline and a decision of the scheduler cost",
    ),
    "share": Bench(
        "penstock.bench.share",
        "latency of urgent pipelines beside bulky ones, on plain Spark and under Penstock",
    ),
    "crash": Bench(
        "penstock.bench.crash",
        "rows lost or doubled when the driver is killed at random moments",
    ),
    "riot": Bench(
        "penstock.bench.riot.bench",
        "the RIoTBench topologies: highest rates and latency under each policy and on plain Spark",
    ),
    "tenants": Bench(
        "penstock.bench.tenants.bench",
        "urgent and bulky tenants on one pool: latency, shares and overhead, beside plain Spark",
    ),
    "batching": Bench(
        "penstock.bench.batching.bench",
        "the Wi-Fi workflow with planned batches, beside fixed ones and plain Spark; privacy operators",
    ),
    "connect": Bench(
        "penstock.bench.connect.bench",
        "each connector against a real broker or server: rows a second, rows lost or doubled over restarts",
    ),
    "scaling": Bench(
        "penstock.bench.scaling.bench",
        "how many slots each stage gets: models against measurements, the controller, changes under load",
    ),
    "elastic": Bench(
        "penstock.bench.elastic.bench",
        "replicas and nodes that follow the load on a real cluster; kills of workers; what limits it",
    ),
    "watch": Bench(
        "penstock.bench.watch",
        "what watching costs: the live page of 20 stages with one viewer",
    ),
}


class UnknownBench(PenstockError):
    """A name that is not in the catalog."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a bench must be one of {', '.join(BENCHES)}, got {name!r}: nothing was measured")
        self.name = name


def bench_named(name: str) -> BenchModule:
    """The module of the bench of that name."""
    if name not in BENCHES:
        raise UnknownBench(name)
    return cast(BenchModule, import_module(BENCHES[name].module))


def add_arguments_of(module: BenchModule, parser: argparse.ArgumentParser) -> None:
    """Lets the bench add its own arguments, if it has any."""
    add = getattr(module, "add_arguments", None)
    if add is not None:
        add(parser)
