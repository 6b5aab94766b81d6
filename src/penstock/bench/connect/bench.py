"""`penstock bench connect`: each connector by itself, against a real broker or server on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

from penstock.bench.result import BenchResult, BenchSettings

PARTS: Mapping[str, str] = {
    "kafka": "penstock.bench.connect.kafka",
    "mqtt": "penstock.bench.connect.mqtt",
    "http": "penstock.bench.connect.http",
}
"""The module of each connector, imported when it is measured: a connector is optional."""


class Part(Protocol):
    """What the module of a connector offers."""

    def measure(self, settings: BenchSettings, result: BenchResult) -> None:
        """Puts the connector's figures into `result`, their names beginning with its own."""
        ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", action="append", choices=tuple(PARTS), help="only these (default: all)")


def run(settings: BenchSettings) -> BenchResult:
    """The connectors one after the other."""
    result = BenchResult("connect")
    for name in settings.option("part") or PARTS:
        settings.say(name)
        known = set(result.figures)
        cast(Part, import_module(PARTS[name])).measure(settings, result)
        for figure, found in result.figures.items():
            if figure not in known:
                settings.say(f"{figure} {found:,.4g}")
    return result
