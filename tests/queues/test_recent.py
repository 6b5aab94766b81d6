from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock import Spool
from penstock.queues.recent import LEAST_BYTES, RecentRows, copy_of


def test_rows_are_known_by_their_file_until_it_goes() -> None:
    recent, table = RecentRows(), pa.table({"n": [1, 2, 3]})
    recent.keep("data/a.parquet", table)
    assert recent.rows("/somewhere/data/a.parquet") == table
    assert recent.rows("data/b.parquet") is None
    recent.forget(["data/a.parquet", "data/b.parquet"])
    assert recent.rows("data/a.parquet") is None


def test_no_more_is_kept_than_there_is_room_for_and_what_goes_makes_room() -> None:
    table = pa.table({"n": list(range(1_000))})
    recent = RecentRows(most_bytes=2 * table.nbytes)
    for name in "abc":
        recent.keep(name, table)
    assert [recent.rows(name) is None for name in "abc"] == [False, False, True]
    recent.forget(["a"])
    recent.keep("d", table)
    assert recent.rows("d") == table


def test_tables_of_a_row_count_for_what_they_take() -> None:
    recent = RecentRows(most_bytes=10 * LEAST_BYTES)
    for number in range(20):
        recent.keep(str(number), pa.table({"n": [number]}))
    assert [recent.rows(str(number)) is not None for number in range(20)] == [True] * 10 + [False] * 10


def test_rows_of_a_large_table_do_not_keep_all_of_it() -> None:
    large = pa.table({"n": list(range(100_000)), "text": [f"number {n}" for n in range(100_000)]})
    before = pa.total_allocated_bytes()
    own = copy_of(large.slice(50_000, 10))
    assert own == large.slice(50_000, 10)
    del large
    assert pa.total_allocated_bytes() < before - 1_000_000


def test_who_writes_the_next_rows_over_the_last_ones_changes_nothing_that_is_kept() -> None:
    numbers, recent = np.arange(1_000), RecentRows()
    recent.keep("a", pa.table({"n": numbers}))
    numbers[:] = 0
    assert recent.rows("a") == pa.table({"n": np.arange(1_000)})


def test_a_spool_forgets_rows_that_every_consumer_has_released(tmp_path: Path) -> None:
    with Spool(tmp_path / "q") as spool:
        reader = spool.subscribe("c")
        for _ in range(3):
            spool.append(pa.table({"n": [1]}))
        kept = spool._shelf.recent
        files = [segment.files[0] for segment in spool.segments]
        assert all(kept.rows(file) is not None for file in files)
        taken = reader.take(2, tmp_path)
        reader.commit(taken)
        reader.release(taken)
        assert [kept.rows(file) is None for file in files] == [True, True, False]
        discarded = spool.write_pending(pa.table({"n": [1]}), "p", 0)
        spool.discard_pending()
        assert kept.rows(discarded.files[0]) is None
