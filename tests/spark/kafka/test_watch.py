"""What a look at a cluster says, and which failures of a turn it excuses; no broker is needed for that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.spark.conftest import eventually

from penstock import sources
from penstock.errors import PenstockError
from penstock.queues.offsets import Offsets, Reach
from penstock.queues.topic import TopicCursor, TopicRules
from penstock.spark.kafka import source as source_module
from penstock.spark.kafka import watch as watch_module
from penstock.spark.kafka.source import TopicSource, is_excused
from penstock.spark.kafka.watch import BrokerWatch, Look

THERE = Look({"t/0": Reach(0, 10)}, number=1)


def test_an_answer_tells_the_offsets_or_why_there_are_none() -> None:
    look = Look.parse("ok 7\nt 0 5 9\nu.x-y 12 0 3\n")
    assert look == Look({"t/0": Reach(5, 9), "u.x-y/12": Reach(0, 3)}, number=7)
    assert look.there
    assert look.of(("t",)) == Look({"t/0": Reach(5, 9)}, number=7)
    assert Look.parse("ok 8\n") == Look(number=8)
    away, refused = Look.parse("away no answer in 5000 ms"), Look.parse("refused wrong password")
    assert (away.away, away.there) == ("no answer in 5000 ms", False)
    assert (refused.refused, refused.there) == ("wrong password", False)


def test_a_turn_is_excused_by_a_cluster_that_is_away_or_was_just_now() -> None:
    failed = RuntimeError("java.lang.ArithmeticException: divide by zero")
    timed_out = RuntimeError("Caused by: org.apache.kafka.common.errors.TimeoutException: expired")
    denied = RuntimeError("Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: no")
    assert is_excused(failed, (), Look(away="gone"))
    assert is_excused(timed_out, (), THERE)
    assert not is_excused(failed, (), THERE)
    assert not is_excused(denied, (), THERE)


def test_an_error_of_a_stage_over_kafka_is_not_excused_for_the_classes_in_its_stack() -> None:
    stack = "raised\n\tat org.apache.spark.sql.kafka010.KafkaWriteTask.execute(KafkaWriteTask.scala:49)"
    assert not is_excused(RuntimeError(stack), (), THERE)


def test_a_turn_is_excused_when_its_records_were_deleted_under_it() -> None:
    topic = TopicCursor("q", TopicRules(), Offsets())
    topic.seen({"t/0": Reach(0, 10)}, 1.0)
    taken = topic.take(5)
    assert is_excused(RuntimeError("gone"), taken, Look({"t/0": Reach(3, 10)}, number=2))
    assert not is_excused(RuntimeError("gone"), taken, Look({"t/0": Reach(0, 10)}, number=2))


class Listens:
    """A stage that notes what it is told, and whether the source would hear others meanwhile."""

    now = 1.0

    def __init__(self, source: TopicSource):
        self.source = source
        self.heard: list[str] = []

    def began(self, offsets: Offsets) -> None:
        self.heard.append(f"began, ready {self.source.ready}")

    def came(self) -> None:
        self.heard.append(f"came, ready {self.source.ready}")

    def lost(self, slices: object) -> None: ...

    def gone(self, error: PenstockError) -> None:
        free = self.source._telling.acquire(timeout=1)
        self.heard.append(f"{type(error).__name__}, free {free}")


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Callable[[Offsets], Listens]:
    for name in ("topics_client", "watch"):
        monkeypatch.setattr(source_module, name, lambda *given: object())

    def make(offsets: Offsets) -> Listens:
        made = TopicSource(sources.Kafka("k:9092", "t"), "s", None, offsets)  # type: ignore[arg-type]
        listens = Listens(made)
        made.follow(listens)
        return listens

    return make


def test_a_stage_may_run_only_when_what_it_begins_with_is_durable(
    source: Callable[[Offsets], Listens],
) -> None:
    listens = source(Offsets())
    listens.source.told(THERE)
    assert listens.heard == ["began, ready False", "came, ready True"]


def test_a_stage_is_told_that_records_are_gone_when_nobody_waits_for_the_source(
    source: Callable[[Offsets], Listens],
) -> None:
    listens = source(Offsets({"t/0": 5}))
    listens.source.told(Look({"t/0": Reach(7, 10)}, number=1))
    assert listens.heard[0] == "OffsetsExpired, free True"


def test_a_watcher_that_fails_is_told_again_and_so_are_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Counts:
        topics, reads = ("t",), True

        def __init__(self, fails: bool):
            self.fails, self.times = fails, 0

        def told(self, look: Look) -> None:
            self.times += 1
            if self.fails:
                raise OSError("the disk is full")

    monkeypatch.setattr(watch_module, "topics_client", lambda *given: None)
    monkeypatch.setattr(watch_module, "look_at", lambda *given, **named: THERE)
    watch, watchers = BrokerWatch(None, "k:9092", {}), (Counts(True), Counts(False))  # type: ignore[arg-type]
    for each in watchers:
        watch.add(each)
    eventually(lambda: min(each.times for each in watchers) > 2, 10)
    for each in watchers:
        watch.remove(each)
    assert "the disk is full" in caplog.text


def test_a_source_that_was_closed_is_followed_and_told_of_no_more(
    source: Callable[[Offsets], Listens], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    listens = source(Offsets())
    monkeypatch.setattr(source_module, "watch", lambda *given: made.append(given))
    monkeypatch.setattr(source_module, "unwatch", lambda *given: None)
    listens.source.close()
    listens.source.follow(listens)
    listens.source.told(THERE)
    assert (made, listens.heard) == ([], [])
