"""`bench connect` measures the connectors that were asked for, each from a file of its own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.bench.connect import bench
from penstock.bench.result import BenchResult, BenchSettings
from penstock.bench.stats import single


def settings(tmp_path: Path, *parts: str) -> BenchSettings:
    options = argparse.Namespace(part=list(parts) or None)
    return BenchSettings(True, tmp_path / "connect.json", options, say=lambda text: None)


def test_all_parts_are_measured_or_those_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):

        def measure(asked: BenchSettings, result: BenchResult, name: str = name) -> None:
            result.put(f"{name}_rows_per_s", single(1.0))

        monkeypatch.setitem(sys.modules, f"parts_{name}", SimpleNamespace(measure=measure))
    monkeypatch.setattr(bench, "PARTS", {"one": "parts_one", "two": "parts_two"})
    assert list(bench.run(settings(tmp_path)).figures) == ["one_rows_per_s", "two_rows_per_s"]
    assert list(bench.run(settings(tmp_path, "two")).figures) == ["two_rows_per_s"]


def test_every_part_is_a_file_beside_it() -> None:
    for name, module in bench.PARTS.items():
        assert module == f"penstock.bench.connect.{name}"
        assert Path(bench.__file__).with_name(f"{name}.py").is_file()
