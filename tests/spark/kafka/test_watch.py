"""What a look at a cluster says, and which failures of a turn it excuses; no broker is needed for that."""

from __future__ import annotations

from penstock.queues.offsets import Offsets, Reach
from penstock.queues.topic import TopicCursor, TopicRules
from penstock.spark.kafka.source import is_excused
from penstock.spark.kafka.watch import Look

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
