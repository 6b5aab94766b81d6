"""The bench's own short run: managers on a real cluster, with a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.plan.elastic import AddNode, Record, ReleaseNode
from penstock.workloads.rabbitmq import is_installed

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.skipif(not is_installed(), reason="rabbitmq-server is not installed"),
]


def test_nodes_come_or_go_while_every_word_is_counted_once(tmp_path: Path) -> None:
    written, kept = tmp_path / "elastic.json", tmp_path / "kept"
    assert main(["bench", "elastic", "--quick", "--keep", str(kept), "--json", str(written)]) == 0
    figures = json.loads(written.read_text())["figures"]
    assert (figures["lost"], figures["doubled"]) == (0, 0)
    (journal,) = kept.glob("made-*/nodes-*/driver/state/elastic.jsonl")
    records = [Record.from_json(json.loads(line)) for line in journal.read_text().splitlines()]
    granted = [each for record in records for each in record.decisions if each.kind == "granted"]
    assert any(isinstance(each.change, AddNode | ReleaseNode) for each in granted)
    (samples,) = kept.glob("made-*/nodes-*/driver/samples.jsonl")
    assert len({json.loads(line)["nodes"] for line in samples.read_text().splitlines()}) > 1
