from pathlib import Path

import pyarrow as pa

from penstock import Spool
from penstock.queues.recent import RecentRows, compact


def test_rows_are_known_by_their_file_until_it_goes() -> None:
    recent, table = RecentRows(), pa.table({"n": [1, 2, 3]})
    recent.keep("data/a.parquet", table)
    assert recent.rows("/somewhere/data/a.parquet") == table
    assert recent.rows("data/b.parquet") is None
    recent.forget(["data/a.parquet", "data/b.parquet"])
    assert recent.rows("data/a.parquet") is None


def test_no_more_is_kept_than_there_is_room_for_and_what_goes_makes_room() -> None:
    table = pa.table({"n": list(range(100))})
    recent = RecentRows(most_bytes=2 * table.nbytes)
    for name in "abc":
        recent.keep(name, table)
    assert [recent.rows(name) is None for name in "abc"] == [False, False, True]
    recent.forget(["a"])
    recent.keep("d", table)
    assert recent.rows("d") == table


def test_rows_of_a_large_table_do_not_keep_all_of_it() -> None:
    large = pa.table({"n": list(range(100_000)), "text": [f"number {n}" for n in range(100_000)]})
    few = large.slice(50_000, 10)
    assert few.get_total_buffer_size() > 1_000_000
    own = compact(few)
    assert own == few
    assert own.get_total_buffer_size() < 10_000
    small = pa.table({"n": [1]})
    assert compact(pa.concat_tables([small, small])).column("n").num_chunks == 1


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
