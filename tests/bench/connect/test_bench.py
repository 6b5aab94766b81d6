"""`bench connect` measures the connectors that were asked for, each from a file of its own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.bench.connect import bench
from penstock.bench.connect.drivers import Drivers
from penstock.bench.result import BenchResult, BenchSettings
from penstock.bench.stats import single


def settings(tmp_path: Path, *parts: str) -> BenchSettings:
    options = argparse.Namespace(part=list(parts) or None)
    return BenchSettings(True, tmp_path / "connect.json", options, say=lambda text: None)


def test_all_parts_are_measured_or_those_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):

        def measure(asked: BenchSettings, result: BenchResult, drivers: Drivers, name: str = name) -> None:
            result.put(f"{name}_lost", single(1.0))
            result.put(f"{name}_doubled", single(0.0))

        monkeypatch.setitem(sys.modules, f"parts_{name}", SimpleNamespace(measure=measure))
    monkeypatch.setattr(bench, "PARTS", {"one": "parts_one", "two": "parts_two"})
    both = bench.run(settings(tmp_path)).figures
    assert list(both) == ["one_lost", "one_doubled", "two_lost", "two_doubled", "lost", "doubled"]
    assert both["lost"] == 2
    assert list(bench.run(settings(tmp_path, "two")).figures) == [
        "two_lost",
        "two_doubled",
        "lost",
        "doubled",
    ]


def test_doubles_of_mqtt_stand_by_themselves_and_its_losses_do_not() -> None:
    result = BenchResult("connect")
    for name, lost, doubled in (("kafka", 1, 2), ("mqtt", 4, 8), ("files", 16, 32)):
        result.put(f"{name}_lost", single(lost))
        result.put(f"{name}_doubled", single(doubled))
    bench.put_sums(result, ("kafka", "mqtt", "files"))
    assert (result.figures["lost"], result.figures["doubled"]) == (21, 34)
    assert result.missed == ["lost", "doubled"]
    assert result.setup["doubled"] == (
        "the sum over the paths that are exactly once (kafka, files); "
        "MQTT's QoS 1 is at least once: mqtt_doubled stands by itself"
    )


def test_every_part_is_a_file_beside_it() -> None:
    for name, module in bench.PARTS.items():
        assert module == f"penstock.bench.connect.{name}"
        assert Path(bench.__file__).with_name(f"{name}.py").is_file()
