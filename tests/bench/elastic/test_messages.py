"""Messages against what was sent."""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
import pika
import pytest

from penstock.bench.elastic import messages as elastic_messages
from penstock.bench.elastic.messages import Collector, Latencies, counted, due_times, occurrences
from penstock.errors import PenstockError
from penstock.workloads.wordcount import Ramp, Sentences

SENTENCES = Sentences(seed=3, words=5, least=2, most=3)
RAMP = Ramp(2.0, 2.0, 2.0)
PHASES = [
    {"name": "warmup", "began": 0.0, "first": 0, "sent": 2},
    {"name": "ramp", "began": 100.0, "first": 2, "sent": 6},
]


def messages(delay: float) -> list[tuple[float, str]]:
    """Every word of six sentences; those of the last four come `delay` after they were due."""
    dues = [0.5, 1.0, *(100.0 + due_times(RAMP, 4))]
    return [
        (float(dues[number]) + delay, json.dumps({"word": word, "count": nth}))
        for word, nth, number in occurrences(SENTENCES, 6)
    ]


def test_every_word_is_known_by_how_often_it_had_come() -> None:
    told = occurrences(SENTENCES, 6)
    assert len(told) == sum(SENTENCES.counts(6).values())
    assert {(word, nth) for word, nth, _ in told} == {
        (word, nth) for word, times in SENTENCES.counts(6).items() for nth in range(1, times + 1)
    }


def test_latency_is_from_when_a_sentence_was_due_and_of_the_ramp_alone() -> None:
    found = counted(messages(0.25), SENTENCES, PHASES, RAMP)
    assert (found.lost, found.doubled) == (0, 0)
    assert found.latencies.seconds == pytest.approx([0.25] * len(found.latencies.seconds))
    assert sorted(set(found.latencies.due.round(3))) == [0.5, 1.0, 1.5, 2.0]


def test_what_is_missing_is_lost_and_what_comes_again_is_doubled() -> None:
    all_of_them = messages(0.25)
    found = counted([*all_of_them[:-2], all_of_them[0]], SENTENCES, PHASES, RAMP)
    assert (found.lost, found.doubled) == (2, 1)
    unsent = (1.0, json.dumps({"word": "never", "count": 1}))
    assert counted([*all_of_them, unsent], SENTENCES, PHASES, RAMP).doubled == 1


def test_a_consumer_that_lost_its_connection_is_no_lost_message(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        """A broker that goes away at once."""

        host, port = "127.0.0.1", 5672

        def __getattr__(self, name: str) -> Any:
            return lambda *arguments, **named: self

        def start_consuming(self) -> None:
            raise pika.exceptions.ConnectionClosedByBroker(320, "gone")

    monkeypatch.setattr(pika, "BlockingConnection", lambda where: Gone())
    monkeypatch.setattr(elastic_messages, "QUIET_SECONDS", 0.0)
    collector = Collector(cast(Any, Gone()), "words")
    with pytest.raises(PenstockError) as refused:
        collector.wait_for(1, 30.0)
    assert str(refused.value) == (
        "the consumer of 'words' must stay connected, but was not: ConnectionClosedByBroker: (320) 'gone'. "
        "What was lost cannot be told"
    )


def test_latency_by_minute_leaves_out_minutes_without_words() -> None:
    found = Latencies(np.array([0.0, 1.0, 25.0]), np.array([1.0, 3.0, 5.0]))
    assert found.by_minute(10.0) == [(0.5, 2.0), (2.5, 5.0)]
