"""`penstock bench connect`: each connector by itself, against a real broker or server on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

from penstock.bench.connect.drivers import Drivers
from penstock.bench.result import BenchResult, BenchSettings, at_most
from penstock.bench.stats import single

PARTS: Mapping[str, str] = {
    "kafka": "penstock.bench.connect.kafka",
    "mqtt": "penstock.bench.connect.mqtt",
    "http": "penstock.bench.connect.http",
    "files": "penstock.bench.connect.files",
}
"""The module of each connector, imported when it is measured: a connector is optional."""
AT_LEAST_ONCE = frozenset({"mqtt"})
"""Connectors whose protocol may bring a row twice: their doubles are told by themselves."""


class Part(Protocol):
    """What the module of a connector offers."""

    def measure(self, settings: BenchSettings, result: BenchResult, drivers: Drivers) -> None:
        """Puts the connector's figures into `result`, their names beginning with its own."""
        ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", action="append", choices=tuple(PARTS), help="only these (default: all)")


def run(settings: BenchSettings) -> BenchResult:
    """The connectors one after the other, and what all of them together lost and doubled."""
    result = BenchResult("connect")
    parts = tuple(settings.option("part") or PARTS)
    with Drivers() as drivers:
        for name in parts:
            settings.say(name)
            known = set(result.figures)
            cast(Part, import_module(PARTS[name])).measure(settings, result, drivers)
            for figure, found in result.figures.items():
                if figure not in known:
                    settings.say(f"{figure} {found:,.4g}")
    put_sums(result, parts)
    return result


def put_sums(result: BenchResult, parts: Sequence[str]) -> None:
    """`lost` over all parts, `doubled` over those that bring each row exactly once."""
    once = [part for part in parts if part not in AT_LEAST_ONCE]
    result.put("lost", single(sum(result.figures[f"{part}_lost"] for part in parts)), at_most(0))
    result.put("doubled", single(sum(result.figures[f"{part}_doubled"] for part in once)), at_most(0))
    result.setup["lost"] = f"the sum over {', '.join(parts)}"
    result.setup["doubled"] = (
        f"the sum over the paths that are exactly once ({', '.join(once) or 'none was measured'}); "
        "MQTT's QoS 1 is at least once: mqtt_doubled stands by itself"
    )
