"""What a spool keeps, and counts, for consumers that are away or have committed."""

from pathlib import Path

import pyarrow as pa

from penstock.queues.spool import Spool


def test_a_detached_consumer_finds_the_rows_it_had_not_read(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool") as spool:
        quick, slow = spool.subscribe("quick"), spool.subscribe("slow")
        spool.append(pa.table({"x": [1, 2, 3]}))
        spool.detach("slow")
        taken = quick.take(None, tmp_path)
        quick.commit(taken)
        quick.release(taken)
        assert slow.rows_waiting == 3
        assert spool.subscribe("slow", slow.position).rows_waiting == 3


def test_nothing_is_removed_before_every_earlier_consumer_is_back(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool") as spool:
        spool.subscribe("quick")
        slow = spool.subscribe("slow").position
        spool.append(pa.table({"x": [1, 2, 3]}))
    with Spool(tmp_path / "spool") as spool:
        quick = spool.subscribe("quick")
        taken = quick.take(None, tmp_path)
        quick.commit(taken)
        quick.release(taken)
        assert spool.subscribe("slow", slow).rows_waiting == 3


def test_a_consumer_that_unsubscribed_is_not_waited_for(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool") as spool:
        spool.subscribe("quick")
        spool.subscribe("gone")
        spool.unsubscribe("gone")
        spool.append(pa.table({"x": [1, 2, 3]}))
    with Spool(tmp_path / "spool") as spool:
        quick = spool.subscribe("quick")
        taken = quick.take(None, tmp_path)
        quick.commit(taken)
        quick.release(taken)
        assert spool.segments == ()


def test_room_is_there_as_soon_as_every_consumer_has_committed(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool", limit_bytes=10_000_000) as spool:
        consumer = spool.subscribe("held")
        spool.append(pa.table({"x": [1, 2, 3]}))
        taken = consumer.take(None, tmp_path)
        assert spool.free_bytes < 10_000_000
        consumer.commit(taken)
        assert spool.free_bytes == 10_000_000
        consumer.release(taken)
        assert spool.free_bytes == 10_000_000


def test_a_limit_holds_for_what_is_kept_for_a_consumer_that_is_not_back(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool") as spool:
        spool.subscribe("quick")
        slow = spool.subscribe("slow").position
        spool.append(pa.table({"x": [1, 2, 3]}))
    with Spool(tmp_path / "spool", limit_bytes=10_000_000) as spool:
        quick = spool.subscribe("quick")
        taken = quick.take(None, tmp_path)
        quick.commit(taken)
        assert spool.free_bytes == 10_000_000 - spool.bytes
        spool.subscribe("slow", slow)
        assert spool.free_bytes == 10_000_000 - spool.bytes


def test_what_a_new_consumer_reads_once_more_is_counted_again(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool", limit_bytes=10_000_000) as spool:
        held = spool.subscribe("held")
        spool.append(pa.table({"x": [1, 2, 3]}))
        held.commit(held.take(None, tmp_path))
        assert spool.free_bytes == 10_000_000
        new = spool.subscribe("new")
        assert spool.free_bytes == 10_000_000 - spool.bytes
        new.commit(new.take(None, tmp_path))
        assert spool.free_bytes == 10_000_000


def test_what_nobody_reads_any_more_still_counts_as_it_is_kept(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool") as spool:
        spool.subscribe("gone")
        spool.append(pa.table({"x": [1, 2, 3]}))
    with Spool(tmp_path / "spool", limit_bytes=10_000_000) as spool:
        spool.unsubscribe("gone")
        assert spool.free_bytes == 10_000_000 - spool.bytes


def test_room_is_there_when_the_last_who_had_not_committed_is_gone(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool", limit_bytes=10_000_000) as spool:
        quick = spool.subscribe("quick")
        spool.subscribe("slow")
        spool.append(pa.table({"x": [1, 2, 3]}))
        quick.commit(quick.take(None, tmp_path))
        assert spool.free_bytes == 10_000_000 - spool.bytes
        spool.unsubscribe("slow")
        assert spool.free_bytes == 10_000_000
