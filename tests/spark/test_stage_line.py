"""How far event time has come at a stage, by what its queues bring: without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.queues.cursor import Consumer
from penstock.queues.spool import Spool
from penstock.scheduling.contexts import PriorityContext
from penstock.scheduling.policies import ContextPolicy, Llf, TokenShare
from penstock.scheduling.progress import SourcesRule
from penstock.spark.stage_line import EventTime, LineSettings, StageLine

EPOCH = 1_700_000_000.0
NOW = EPOCH + 1000.0
WINDOW = EventTime("ts", 0.0, 5.0, 5.0)


def rows(*seconds: float, column: str = "ts") -> pa.Table:
    times = [datetime.fromtimestamp(EPOCH + each, UTC) for each in seconds]
    return pa.table({column: pa.array(times, pa.timestamp("us", tz="UTC"))})


@pytest.fixture
def spool(tmp_path: Path) -> Callable[[str], Spool]:
    return lambda name: Spool(tmp_path / name)


def line_of(
    consumers: Mapping[str, Consumer],
    event_time: EventTime | None = None,
    rule: SourcesRule | None = None,
    policy: ContextPolicy | None = None,
) -> StageLine:
    stateful = event_time is not None
    settings = LineSettings("s", "t", 0.8, None, event_time, rule or SourcesRule(), stateful)
    line = StageLine(settings, consumers, policy or Llf())
    line.look(NOW)
    return line


def take(line: StageLine, queue: str, consumer: Consumer, tmp_path: Path, count: int | None = None) -> Any:
    return line.took({queue: consumer.take(count, tmp_path / "slices")}, NOW)


def send(queue: Spool, table: pa.Table, batch: int, context: Mapping[str, Any]) -> None:
    queue.publish(queue.write_pending(table, "above", batch, None, context).name)


def at(line: StageLine, now: float = NOW) -> float | None:
    progress = line.progress(now)
    return None if progress is None else progress - EPOCH


def test_a_stage_that_does_not_know_all_its_sources_says_so_to_the_next(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    first, second = spool("first"), spool("second")
    reader = first.subscribe("d")
    direct = line_of({"q": reader}, rule=SourcesRule(2))
    first.append(rows(0.1, 6.0), producer="fast")
    told = take(direct, "q", reader, tmp_path)
    assert told["progress"] == {"ts": None}
    below = second.subscribe("w")
    windowed = line_of({"q": below}, WINDOW, SourcesRule(1))
    send(second, rows(0.1, 6.0), 0, told)
    take(windowed, "q", below, tmp_path)
    assert at(windowed) is None
    first.append(rows(1.0), producer="slow")
    told = take(direct, "q", reader, tmp_path)
    assert told["progress"] == {"ts": EPOCH + 1.0}
    send(second, rows(1.0), 1, told)
    take(windowed, "q", below, tmp_path)
    assert at(windowed) == 1.0


def test_a_stage_with_two_queues_waits_for_the_one_that_has_not_spoken(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    one, other = spool("one"), spool("other")
    consumers = {"one": one.subscribe("w"), "other": other.subscribe("w")}
    line = line_of(consumers, WINDOW, SourcesRule(2))
    one.append(rows(1.0, 30.0))
    take(line, "one", consumers["one"], tmp_path)
    assert at(line) is None
    other.append(rows(2.0))
    take(line, "other", consumers["other"], tmp_path)
    assert at(line) == 2.0


def test_sources_that_come_together_are_known_apart(spool: Callable[[str], Spool], tmp_path: Path) -> None:
    queue = spool("q")
    reader = queue.subscribe("w")
    line = line_of({"q": reader}, WINDOW, SourcesRule(3))
    queue.append_together({"fast": rows(1.0, 60.0), "slow": rows(2.0, 4.0)})
    take(line, "q", reader, tmp_path)
    assert at(line) is None, "one of three has not spoken"
    queue.append_together({"slow": rows(7.0), "last": rows(5.0)})
    line.look(NOW)
    assert at(line) is None, "what waits was not taken"
    take(line, "q", reader, tmp_path)
    assert at(line) == 5.0
    queue.append(rows(90.0), producer="last")
    take(line, "q", reader, tmp_path)
    assert at(line) == 7.0
    assert line.completed_at(EPOCH + 7.0) is not None
    assert line.completed_at(EPOCH + 8.0) is None


def test_a_stage_without_state_tells_how_far_sources_have_come_that_came_together(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    queue = spool("q")
    reader = queue.subscribe("d")
    line = line_of({"q": reader})
    queue.append_together({"fast": rows(1.0, 60.0), "slow": rows(2.0, 4.0)})
    first = take(line, "q", reader, tmp_path, 3)
    assert first["progress"] == {"ts": None}, "a part of it says nothing of the rest"
    assert take(line, "q", reader, tmp_path)["progress"] == {"ts": EPOCH + 4.0}


def test_rows_of_several_sources_stand_where_the_slowest_of_them_is(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    queue = spool("q")
    reader = queue.subscribe("w")
    line = line_of({"q": reader}, WINDOW)
    alone = queue.append(rows(50.0, 55.0), producer="other")
    joint = queue.append_together({"fast": rows(60.0), "slow": rows(4.0)})
    line.look(NOW)
    assert sorted((alone, joint), key=line.key_of("q")) == [joint, alone]


def test_the_order_in_which_rows_are_taken_does_not_change_under_the_hand(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    queue = spool("q")
    reader = queue.subscribe("w")
    line = line_of({"q": reader}, WINDOW)
    known = queue.append(rows(50.0))
    line.look(NOW)
    key = line.key_of("q")
    earlier = queue.append(rows(4.0))
    line.look(NOW)
    assert sorted((earlier, known), key=key) == [known, earlier]
    assert sorted((earlier, known), key=line.key_of("q")) == [earlier, known]


def test_rows_that_were_given_back_and_taken_again_hold_nothing_back(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    queue = spool("q")
    reader = queue.subscribe("d")
    line = line_of({"q": reader})
    queue.append(rows(1.0, 2.0, 3.0))
    for _ in range(3):
        part = {"q": reader.take(2, tmp_path / "slices")}
        line.took(part, NOW)
        reader.give_back(part["q"])
        line.gave_back(part, NOW)
    assert take(line, "q", reader, tmp_path)["progress"] == {"ts": EPOCH + 3.0}


def test_silence_does_not_count_while_the_stage_could_not_run(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    queue = spool("q")
    reader = queue.subscribe("w")
    line = line_of({"q": reader}, WINDOW)
    queue.append(rows(1.0, 60.0), producer="fast")
    queue.append(rows(1.0, 4.0), producer="slow")
    take(line, "q", reader, tmp_path)
    line.wake(NOW + 100.0)
    assert at(line, NOW + 105.0) == 4.0
    assert at(line, NOW + 111.0) == 60.0


@pytest.mark.parametrize(
    ("column", "seconds", "progress"),
    [("end", 10.0, 10.0), ("window_time", 9.999999, 10.0), ("start", 5.0, 5.0)],
)
def test_results_of_a_window_are_as_far_as_its_end_if_they_stand_there(
    spool: Callable[[str], Spool], tmp_path: Path, column: str, seconds: float, progress: float
) -> None:
    queue = spool("q")
    reader = queue.subscribe("w")
    line = line_of({"q": reader}, EventTime(column, 0.0))
    send(queue, rows(seconds, column=column), 0, {"closed": EPOCH + 10.0, "slide": 5.0})
    take(line, "q", reader, tmp_path)
    assert at(line) == pytest.approx(progress)


def test_what_a_stage_told_of_its_sources_counts_more_than_windows_closed_above(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    queue = spool("q")
    reader = queue.subscribe("w")
    line = line_of({"q": reader}, WINDOW)
    send(queue, rows(2.0, 4.9), 0, {"closed": EPOCH + 5, "slide": 5.0, "progress": {"ts": EPOCH + 3}})
    take(line, "q", reader, tmp_path)
    assert at(line) == 3.0


def test_windows_that_were_passed_over_hold_the_later_ones_back(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    queue = spool("q")
    reader = queue.subscribe("d")
    line = line_of({"q": reader}, policy=TokenShare(rows_per_second=1.0))
    for batch, (end, deferred) in enumerate(((10.0, True), (20.0, False))):
        local = float("inf") if deferred else end
        priority = PriorityContext("m", local, end, 0.0, end, 1.0, deferred).to_json()
        context = {"closed": EPOCH + end, "slide": 10.0, "priority": priority}
        send(queue, rows(end, column="at"), batch, context)
    line.look(NOW)
    taken = reader.take(1, tmp_path / "slices", key=line.key_of("q"))
    assert taken[0].segment.sequence == 2
    told = line.took({"q": taken}, NOW)
    assert told["closed"] == EPOCH + 10.0


def test_a_segment_that_was_begun_before_a_restart_leaves_the_line_with_its_last_row(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    queue = spool("q")
    queue.append(rows(*range(100)))
    reader = queue.subscribe("d")
    position = reader.commit(reader.take(40, tmp_path / "slices"))
    queue.detach("d")
    reader = queue.subscribe("d", position)
    line = line_of({"q": reader})
    line.look(NOW)
    take(line, "q", reader, tmp_path)
    assert line.rows_known == 0


def test_results_of_state_without_windows_may_be_as_old_as_rows_may_be_late(
    spool: Callable[[str], Spool], tmp_path: Path
) -> None:
    queue = spool("q")
    reader = queue.subscribe("s")
    line = line_of({"q": reader}, EventTime("ts", 5.0))
    queue.append(rows(60.0))
    assert take(line, "q", reader, tmp_path)["progress"] == {"ts": EPOCH + 55.0}
