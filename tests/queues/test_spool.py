import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.queues import (
    Arrivals,
    Position,
    PositionAhead,
    Spool,
    SpoolClosed,
    SpoolError,
    SpoolFull,
    SpoolInUse,
)

Rows = Callable[[int, int], pa.Table]
Open = Callable[..., Spool]


def test_an_appended_table_is_a_segment_with_counts_and_ranges(open_spool: Open, rows: Rows) -> None:
    spool = open_spool(clock=lambda: 50.0)
    segment = spool.append(rows(10, 5))
    assert (segment.sequence, segment.producer, segment.batch, segment.rows) == (1, "append", 0, 5)
    assert segment.event_ranges == {"ts": (10.0, 14.0)}
    assert (segment.arrivals, segment.published) == (Arrivals.at(50.0, 5), 50.0)
    assert segment.sizes == ((spool.path / segment.files[0]).stat().st_size,)
    assert (spool.rows, spool.bytes) == (5, segment.bytes)


def test_an_empty_table_publishes_nothing(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    assert spool.append(rows(0, 0)).rows == 0
    assert spool.segments == ()


def test_reopening_finds_the_same_segments(open_spool: Open, rows: Rows) -> None:
    spool = open_spool(clock=lambda: 1234.567891)
    spool.append(rows(0, 3), producer="alerts.per second/ü", arrivals=Arrivals.at(7.0, 1))
    spool.append(rows(3, 2))
    before = spool.segments
    again = open_spool()
    assert again.segments == before
    assert (again.rows, again.bytes) == (5, sum(segment.bytes for segment in before))
    assert all(name[0].isdigit() for name in os.listdir(again.path / "data"))


def test_numbers_go_on_after_every_segment_was_removed(open_spool: Open, rows: Rows, tmp_path: Path) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for producer in ("a", "b", "a"):
        spool.append(rows(0, 1), producer=producer)
    taken = reader.take(None, tmp_path)
    position = reader.commit(taken)
    reader.release(taken)
    assert (spool.segments, spool.rows, spool.bytes) == ((), 0, 0)
    for _ in range(2):
        spool = open_spool()
        assert (spool.last_batch("a"), spool.last_batch("b"), spool.last_batch("c")) == (1, 0, None)
    reader = spool.subscribe("c", position)
    segment = spool.append(rows(0, 1), producer="a")
    assert (segment.sequence, segment.batch, reader.rows_waiting) == (4, 2, 1)


def test_removed_producers_leave_one_name_each(open_spool: Open, rows: Rows, tmp_path: Path) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for _ in range(5):
        spool.append(rows(0, 1))
        taken = reader.take(None, tmp_path)
        reader.commit(taken)
        reader.release(taken)
    assert os.listdir(spool.path / "removed") == ["000000000005-append-4.json"]
    assert os.listdir(spool.path / "data") == os.listdir(spool.path / "segments") == []


def test_pending_rows_are_seen_only_once_published_and_publishing_again_is_harmless(
    open_spool: Open, rows: Rows
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    pending = spool.write_pending(rows(0, 4), "p.stage", 9, Arrivals.at(3.0, 100))
    assert (reader.rows_waiting, spool.rows, pending.name) == (0, 0, "p.stage-9")
    spool = open_spool()
    reader = spool.subscribe("c")
    segment = spool.publish("p.stage-9", now=8.0)
    assert segment is not None
    assert (segment.batch, segment.published, segment.arrivals) == (9, 8.0, Arrivals.at(3.0, 4))
    assert spool.publish("p.stage-9") is None
    assert open_spool().publish("p.stage-9") is None
    assert reader.rows_waiting == 4


def test_writing_a_batch_again_replaces_what_was_pending(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    spool.write_pending(rows(0, 4), "p", 1)
    spool.write_pending(rows(0, 2), "p", 1)
    assert len(os.listdir(spool.path / "data")) == 1
    segment = spool.publish("p-1")
    assert segment is not None
    assert segment.rows == 2


def test_pending_segments_that_nobody_names_are_discarded(open_spool: Open, rows: Rows) -> None:
    spool = open_spool(limit_bytes=10_000)
    spool.write_pending(rows(0, 4), "p", 1)
    kept = spool.write_pending(rows(0, 4), "p", 2)
    assert spool.discard_pending({"p-2"}) == ("p-1",)
    assert spool.pending == (kept,)
    assert spool.free_bytes == 10_000 - kept.bytes
    assert len(os.listdir(spool.path / "data")) == 1


def test_an_empty_result_is_pending_but_never_a_segment(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    spool.write_pending(rows(0, 0), "p", 1)
    spool = open_spool()
    assert [pending.rows for pending in spool.pending] == [0]
    assert spool.publish("p-1") is None
    assert (spool.pending, spool.segments) == ((), ())


def test_files_written_elsewhere_are_moved_in(open_spool: Open, rows: Rows, tmp_path: Path) -> None:
    spool = open_spool()
    files = [tmp_path / f"part-{part}.parquet" for part in range(3)]
    for file, table in zip(files, (rows(0, 3), rows(0, 0), rows(3, 2)), strict=True):
        pq.write_table(table, file)
    pending = spool.adopt_pending(files, "p", 1, Arrivals.at(1.0, 5))
    assert (pending.rows, len(pending.files), pending.event_ranges) == (5, 2, {"ts": (0.0, 4.0)})
    assert not any(file.exists() for file in files)
    spool.publish(pending.name)
    assert open_spool().rows == 5


def test_files_with_other_rows_than_announced_stay_where_they_are(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    pq.write_table(rows(0, 3), tmp_path / "part")
    with pytest.raises(
        SpoolError, match="batch 1 of 'p' must bring the 4 rows announced, got 3 in its files"
    ):
        open_spool().adopt_pending([tmp_path / "part"], "p", 1, rows=4)
    assert (tmp_path / "part").exists()


def test_a_full_spool_refuses_and_says_so(open_spool: Open, rows: Rows, tmp_path: Path) -> None:
    size = open_spool().append(rows(0, 3)).bytes
    spool = open_spool(limit_bytes=2 * size, when_full="refuse")
    reader = spool.subscribe("c")
    spool.append(rows(0, 3))
    assert spool.free_bytes == 0
    with pytest.raises(SpoolFull) as refusal:
        spool.append(rows(0, 3))
    assert str(refusal.value) == (
        f"spool 'q' may hold {2 * size} bytes, has {2 * size} and was asked to take {size} more: nothing was "
        "appended; append again when its consumers have caught up"
    )
    assert len(os.listdir(spool.path / "data")) == 2
    taken = reader.take(3, tmp_path)
    reader.commit(taken)
    reader.release(taken)
    assert spool.append(rows(0, 3)).sequence == 3


def test_an_append_larger_than_the_limit_is_refused_at_once(open_spool: Open, rows: Rows) -> None:
    spool = open_spool(limit_bytes=100)
    with pytest.raises(SpoolFull, match=r"must fit its limit of 100 bytes, got \d+: it would never fit"):
        spool.append(rows(0, 3))


def test_a_waiting_producer_goes_on_when_a_segment_is_released(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    size = open_spool().append(rows(0, 3)).bytes
    spool = open_spool(limit_bytes=size)
    reader = spool.subscribe("c")
    with pytest.raises(SpoolFull, match=r"more after waiting \d+\.\d+ s: nothing was appended"):
        spool.append(rows(3, 3), timeout=0.01)
    producer = threading.Thread(target=spool.append, args=(rows(3, 3),))
    producer.start()
    taken = reader.take(None, tmp_path)
    reader.commit(taken)
    reader.release(taken)
    producer.join(10)
    assert [segment.sequence for segment in spool.segments] == [2]
    assert spool.free_bytes == 0


def test_closing_wakes_a_waiting_producer(open_spool: Open, rows: Rows) -> None:
    size = open_spool().append(rows(0, 3)).bytes
    spool = open_spool(limit_bytes=size)
    raised: list[BaseException] = []

    def produce() -> None:
        try:
            spool.append(rows(3, 3))
        except SpoolClosed as error:
            raised.append(error)

    producer = threading.Thread(target=produce)
    producer.start()
    spool.close()
    producer.join(10)
    assert [str(error) for error in raised] == ["spool 'q' is closed: nothing was done"]
    assert open_spool().rows == 3


def test_a_second_owner_is_turned_away(open_spool: Open, tmp_path: Path) -> None:
    open_spool()
    with pytest.raises(SpoolInUse, match=f"/q is in use by process {os.getpid()}: close it there first"):
        Spool(tmp_path / "q")


def test_another_process_is_turned_away(open_spool: Open, tmp_path: Path) -> None:
    open_spool()
    script = f"from penstock.queues import Spool; Spool({str(tmp_path / 'q')!r})"
    paths = os.pathsep.join(path for path in sys.path if path)
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert f"is in use by process {os.getpid()}" in ended.stderr


def test_listeners_hear_of_rows_that_come_or_of_room_without_the_lock(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    heard: list[int] = []

    def listener() -> None:
        other = threading.Thread(target=lambda: heard.append(len(spool.segments)))
        other.start()
        other.join(5)

    def broken() -> None:
        heard.append(-1)
        raise RuntimeError("broken")

    spool.add_listener(broken)
    spool.add_listener(listener)
    spool.add_listener(lambda: heard.append(100 + len(spool.segments)), to_room=True)
    spool.append(rows(0, 1))
    taken = reader.take(None, tmp_path)
    reader.give_back(taken)
    assert heard == [-1, 1, 1]
    taken = reader.take(None, tmp_path)
    reader.commit(taken)
    reader.release(taken)
    assert heard[3:] == [100]
    spool.remove_listener(listener)
    spool.append(rows(0, 1))
    assert heard[4:] == []


def test_a_position_the_spool_never_reached_is_refused(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    spool.append(rows(0, 1))
    with pytest.raises(PositionAhead, match="must stand at or before its newest segment 1, got position 2"):
        spool.subscribe("c", Position(low=2))


def test_two_consumers_need_two_names(open_spool: Open) -> None:
    spool = open_spool()
    spool.subscribe("c")
    with pytest.raises(SpoolError, match="must have names of their own, got 'c' twice"):
        spool.subscribe("c")


def test_unsubscribing_the_slowest_consumer_frees_its_segments(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    spool = open_spool()
    fast, _ = spool.subscribe("fast"), spool.subscribe("slow")
    spool.append(rows(0, 1))
    taken = fast.take(None, tmp_path)
    fast.commit(taken)
    fast.release(taken)
    assert spool.rows == 1
    spool.unsubscribe("slow")
    assert (spool.rows, os.listdir(spool.path / "data")) == (0, [])
    spool.append(rows(0, 1))
    spool.unsubscribe("fast")
    assert (spool.rows, fast.rows_waiting, fast.take(None, tmp_path)) == (1, 0, ())


def test_many_threads_append_without_a_gap(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    table = rows(0, 2)
    threads = [
        threading.Thread(target=lambda name=name: [spool.append(table, producer=name) for _ in range(25)])
        for name in ("a", "a", "b", "b")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [segment.sequence for segment in spool.segments] == list(range(1, 101))
    for name in ("a", "b"):
        assert [s.batch for s in spool.segments if s.producer == name] == list(range(50))


def test_settings_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="limit_bytes must be positive, got 0: no row would ever fit"):
        Spool(tmp_path / "q", limit_bytes=0)
    with pytest.raises(ValueError, match="when_full must be 'wait' or 'refuse', got 'drop'"):
        Spool(tmp_path / "q", when_full="drop")  # type: ignore[arg-type]


def test_what_was_sent_along_with_the_newest_segment_is_known_after_it_was_removed(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    spool = open_spool()
    assert spool.last_context("p") == {}
    spool.append(rows(0, 3), producer="p", context={"keys": ["a"]})
    spool.append(rows(3, 3), producer="p", context={"keys": ["b"]})
    assert spool.last_context("p") == {"keys": ["b"]}
    assert [segment.context for segment in open_spool().segments] == [{"keys": ["a"]}, {"keys": ["b"]}]
    again = open_spool()
    reader = again.subscribe("reader")
    taken = reader.take(None, tmp_path)
    reader.commit(taken)
    reader.release(taken)
    assert again.segments == ()
    assert again.last_context("p") == {"keys": ["b"]}
    assert open_spool().last_context("p") == {"keys": ["b"]}


def stamped(*seconds: int) -> pa.Table:
    return pa.table({"ts": pa.array([1_000_000 * each for each in seconds], pa.timestamp("us", "UTC"))})


def test_rows_of_several_sources_are_one_segment_that_knows_them_apart(open_spool: Open) -> None:
    spool = open_spool()
    tables = {"slow": stamped(4, 2), "none": stamped(), "fast": stamped(60)}
    segment = spool.append_together(tables, arrivals=Arrivals.at(70.0, 3))
    assert (segment.rows, len(segment.files), segment.arrivals) == (3, 1, Arrivals.at(70.0, 3))
    assert segment.event_ranges == {"ts": (2.0, 60.0)}
    sources = {"slow": {"ts": (2.0, 4.0)}, "fast": {"ts": (60.0, 60.0)}}
    assert segment.together == sources
    assert pq.read_table(spool.path / segment.files[0])["ts"].cast(pa.int64()).to_pylist() == [
        4_000_000,
        2_000_000,
        60_000_000,
    ]
    reopened = open_spool()
    [again] = reopened.segments
    assert again.together == sources
    own = reopened.append(stamped(5), producer="alone")
    assert own.together is None


def test_together_nothing_is_published_of_nothing_and_tables_must_be_alike(open_spool: Open) -> None:
    spool = open_spool()
    assert spool.append_together({}).rows == spool.append_together({"a": stamped()}).rows == 0
    assert spool.segments == ()
    with pytest.raises(SpoolError, match=r"same columns, got \['n'\] of 'b' and \['ts'\] of 'a'"):
        spool.append_together({"a": stamped(1), "b": pa.table({"n": [1]})})


def test_a_spool_that_nobody_reads_is_cleared_up_to_a_time(open_spool: Open, rows: Rows) -> None:
    now = [10.0]
    spool = open_spool(clock=lambda: now[0])
    old = spool.append(rows(0, 3))
    now[0] = 20.0
    new = spool.append(rows(3, 2))
    assert spool.clear(published_by=15.0) == 3
    assert (spool.segments, spool.rows, spool.bytes) == ((new,), 2, new.bytes)
    assert not (spool.path / old.files[0]).exists()
    spool.clear(published_by=25.0)
    spool.close()
    again = open_spool()
    assert again.segments == ()
    assert again.append(rows(0, 1)).batch == 2, "numbers go on"


def test_a_spool_with_a_consumer_even_one_that_is_away_is_not_cleared(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    spool.subscribe("reader")
    spool.append(rows(0, 3))
    for _ in range(2):
        with pytest.raises(SpoolError) as refused:
            spool.clear(published_by=1e12)
        assert str(refused.value) == (
            f"a spool must have no consumers to be cleared, but {spool.name!r} has ['reader']: "
            "they would miss rows; nothing was removed"
        )
        assert spool.rows == 3
        spool.close()
        spool = open_spool()
