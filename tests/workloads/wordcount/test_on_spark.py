"""WordCount on Spark, over a restart: every word is told once with each of its counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Spool, sinks, sources
from penstock.workloads.wordcount import SCHEMA, Sentences, Tally, word_count

if TYPE_CHECKING:
    from tests.spark.conftest import EngineFactory


@pytest.mark.spark
def test_counts_are_those_of_the_sentences_sent_over_turns_and_a_restart(
    engine: EngineFactory, tmp_path: Path
) -> None:
    sentences, tally = Sentences(words=30), Tally()

    def keep(messages: pa.Table, turn: int) -> None:
        tally.add(messages["payload"].to_pylist())

    for part in (range(0, 40, 20), range(40, 80, 20)):
        with Spool(tmp_path / "in") as spool:
            pipeline = word_count(
                sources.FromSpool(spool, SCHEMA), sinks.Callback(keep), replicas={"split": 2, "count": 2}
            )
            running = engine(tmp_path / "state")
            running.submit(pipeline)
            for first in part:
                spool.append(sentences.table(first, 20))
                running.drain(60)
            running.stop()
    sent = sentences.counts(80)
    assert (tally.lost(sent), tally.doubled, tally.unsent(sent)) == (0, 0, 0)
    assert sum(tally.told.values()) == sum(sent.values())
