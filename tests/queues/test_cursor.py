import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.queues import Arrivals, Consumer, CorruptSegment, Position, Slice, SliceOrder, Spool
from penstock.queues.segment import Segment

Rows = Callable[[int, int], pa.Table]
Ids = Callable[[tuple[Slice, ...]], list[int]]
Open = Callable[..., Spool]


def test_a_take_is_exact_and_cuts_the_last_segment(
    open_spool: Open, rows: Rows, ids: Ids, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    spool.append(rows(0, 10), arrivals=Arrivals.at(5.0, 10))
    spool.append(rows(10, 10))
    first = reader.take(4, tmp_path / "cut")
    assert ids(first) == [0, 1, 2, 3]
    assert (first[0].arrivals, first[0].event_ranges) == (Arrivals.at(5.0, 4), {"ts": (0.0, 3.0)})
    assert first[0].sizes == (Path(first[0].paths[0]).stat().st_size,)
    assert [(s.sequence, start) for s, start in reader.waiting()] == [(1, 4), (2, 0)]
    assert ids(reader.take(8, tmp_path / "cut")) == [4, 5, 6, 7, 8, 9, 10, 11]
    assert reader.rows_waiting == 8
    rest = reader.take(None, tmp_path / "cut")
    assert ids(rest) == list(range(12, 20))
    assert (reader.rows_waiting, reader.take(5, tmp_path), reader.oldest_published) == (0, (), None)


def test_a_whole_segment_is_named_and_not_copied(open_spool: Open, rows: Rows, tmp_path: Path) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    segment = spool.append(rows(0, 10))
    taken = reader.take(10, tmp_path / "cut")
    assert taken[0].paths == (str(spool.path / segment.files[0]),)
    assert not (tmp_path / "cut").exists()


def test_whole_segments_are_as_many_as_fit_or_as_many_as_the_least_takes(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for begin in (0, 10, 20):
        spool.append(rows(begin, 10))
    asked = [(5, 0), (5, 1), (10, 1), (29, 1), (30, 1), (99, 1), (25, 11), (25, 25)]
    assert [reader.rows_of_whole_segments(*each) for each in asked] == [0, 10, 10, 20, 30, 30, 20, 30]
    reader.take(4, tmp_path / "cut")
    assert reader.rows_of_whole_segments(15, 1) == 6
    last_first = lambda segment: -segment.sequence  # noqa: E731
    assert reader.rows_of_whole_segments(25, 1, last_first) == 20


def test_what_came_since_the_last_look_costs_nothing_for_what_waits_already(
    open_spool: Open, rows: Rows
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for begin in range(50):
        spool.append(rows(begin, 1))
    assert len(reader.take_fresh()) == 50

    class Counted(dict[int, Segment]):
        asked = 0

        def __getitem__(self, sequence: int) -> Segment:
            Counted.asked += 1
            return super().__getitem__(sequence)

    reader._shelf.segments = Counted(reader._shelf.segments)
    assert reader.take_fresh() == []
    assert Counted.asked == 0


def test_only_the_file_that_is_cut_is_copied(open_spool: Open, rows: Rows, ids: Ids, tmp_path: Path) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    files = [tmp_path / f"part-{part}" for part in range(3)]
    for part, file in enumerate(files):
        pq.write_table(rows(part * 4, 4), file)
    spool.publish(spool.adopt_pending(files, "p", 0).name)
    taken = reader.take(9, tmp_path / "cut")
    assert ids(taken) == list(range(9))
    assert [Path(path).parent.name for path in taken[0].paths] == ["data", "data", "cut"]
    assert taken[0].event_ranges == {"ts": (0.0, 8.0)}
    reader.commit(taken)
    reader.release(taken)
    assert (os.listdir(tmp_path / "cut"), len(os.listdir(spool.path / "data"))) == ([], 3)
    assert ids(reader.take(None, tmp_path / "cut")) == [9, 10, 11]


def test_a_position_survives_json_and_reopening(
    open_spool: Open, rows: Rows, ids: Ids, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for start in (0, 10, 20):
        spool.append(rows(start, 10))
    reader.commit(reader.take(10, tmp_path))
    reader.commit(reader.take(15, tmp_path, key=lambda segment: -segment.sequence))
    position = reader.commit(())
    assert position == Position(low=1, partial={2: 5}, above=frozenset({3}))
    again = open_spool().subscribe("c", Position.from_json(json.loads(json.dumps(position.to_json()))))
    assert again.rows_waiting == 5
    taken = again.take(None, tmp_path)
    assert ids(taken) == [15, 16, 17, 18, 19]
    assert again.commit(taken) == Position(low=3)


def test_rows_that_were_taken_and_not_committed_wait_again_after_reopening(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    spool = open_spool()
    spool.append(rows(0, 10))
    reader = spool.subscribe("c")
    reader.take(7, tmp_path)
    assert open_spool().subscribe("c", reader.position).rows_waiting == 10


def test_a_key_orders_segments(open_spool: Open, rows: Rows, ids: Ids, tmp_path: Path) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for start, arrival in ((0, 3.0), (10, 1.0), (20, 2.0)):
        spool.append(rows(start, 2), arrivals=Arrivals.at(arrival, 2))
    assert reader.oldest_arrival == 1.0
    taken = reader.take(3, tmp_path, key=lambda segment: segment.arrivals.oldest)
    assert ids(taken) == [10, 11, 20]
    assert reader.oldest_arrival == 2.0
    assert reader.commit(taken) == Position(low=0, partial={3: 1}, above=frozenset({2}))
    reader.release(taken)
    assert [segment.sequence for segment in spool.segments] == [1, 3]
    assert ids(reader.take(None, tmp_path)) == [0, 1, 21]
    assert reader.oldest_arrival is None


def test_rows_given_back_wait_where_they_stood(
    open_spool: Open, rows: Rows, ids: Ids, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for start in (0, 10, 20):
        spool.append(rows(start, 10))
    first, second = reader.take(5, tmp_path / "cut"), reader.take(20, tmp_path / "cut")
    with pytest.raises(SliceOrder) as refusal:
        reader.give_back(first)
    assert str(refusal.value) == (
        "consumer 'c' may give back rows of segment 1 only from row 10 backwards to row 0, got rows 0 to 5: "
        "nothing was changed"
    )
    reader.give_back([*first, *second])
    assert os.listdir(tmp_path / "cut") == []
    assert (reader.rows_waiting, ids(reader.take(None, tmp_path))) == (30, list(range(30)))


def test_slices_of_a_segment_are_committed_and_released_in_order(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    spool.append(rows(0, 10))
    first, second = reader.take(5, tmp_path), reader.take(5, tmp_path)
    with pytest.raises(
        SliceOrder, match="may commit rows of segment 1 only from row 0 on, up to row 10, got rows 5"
    ):
        reader.commit(second)
    with pytest.raises(SliceOrder, match="may release rows of segment 1 only from row 0 on, up to row 0"):
        reader.release(first)
    reader.commit([*second, *first])
    reader.release([*first, *second])
    with pytest.raises(SliceOrder):
        reader.release(first)
    assert spool.segments == ()


def test_segments_released_before_a_crash_go_at_the_first_release_after_it(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    spool.append(rows(0, 1))
    spool.append(rows(1, 1))
    position = reader.commit(reader.take(1, tmp_path))
    spool = open_spool()
    reader = spool.subscribe("c", position)
    assert len(spool.segments) == 2
    taken = reader.take(None, tmp_path)
    reader.commit(taken)
    reader.release(taken)
    assert not spool.segments
    assert os.listdir(spool.path / "data") == []


def test_a_cut_that_fails_lets_everything_wait_again(open_spool: Open, rows: Rows, tmp_path: Path) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    spool.append(rows(0, 10))
    segment = spool.append(rows(10, 10))
    file = spool.path / segment.files[0]
    whole = file.read_bytes()
    file.write_bytes(whole[:-8])
    with pytest.raises(CorruptSegment, match=f"segment file {file} must be whole Parquet, reading it failed"):
        reader.take(15, tmp_path)
    assert reader.rows_waiting == 20
    file.write_bytes(whole)
    assert sum(piece.rows for piece in reader.take(15, tmp_path)) == 15


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 6)),
        st.tuples(st.just("take"), st.integers(0, 1), st.integers(1, 9), st.booleans()),
        st.tuples(st.just("commit"), st.integers(0, 1)),
        st.tuples(st.just("give back"), st.integers(0, 1)),
        st.tuples(st.just("reopen")),
    ),
    max_size=30,
)


class Crowd:
    """Two consumers of one spool, what each has committed, and what it has in flight."""

    def __init__(self, path: Path, rows: Rows, ids: Ids):
        self.path, self.rows, self.ids = path, rows, ids
        self.appended = 0
        self.done: list[list[int]] = [[], []]
        self.positions = [Position(), Position()]
        self.spool = Spool(path / "q")
        self.reopen()

    def reopen(self) -> None:
        self.spool.close()
        self.spool = Spool(self.path / "q")
        self.readers = [self.spool.subscribe(str(n), self.positions[n]) for n in (0, 1)]
        self.flying: list[list[tuple[Slice, ...]]] = [[], []]

    def append(self, rows: int) -> None:
        self.spool.append(self.rows(self.appended, rows))
        self.appended += rows

    def take(self, n: int, rows: int, backwards: bool = False) -> None:
        reader: Consumer = self.readers[n]
        waiting = reader.rows_waiting
        key = (lambda segment: -segment.sequence) if backwards else None
        taken = reader.take(rows, self.path / "cut", key=key)
        assert sum(piece.rows for piece in taken) == len(self.ids(taken)) == min(rows, waiting)
        self.flying[n].append(taken)

    def commit(self, n: int) -> None:
        if self.flying[n]:
            taken = self.flying[n].pop(0)
            numbers = self.ids(taken)
            self.positions[n] = Position.from_json(self.readers[n].commit(taken).to_json())
            self.readers[n].release(taken)
            self.done[n] += numbers

    def give_back(self, n: int) -> None:
        if self.flying[n]:
            self.readers[n].give_back(self.flying[n].pop())

    def run(self, script: list[tuple[object, ...]]) -> None:
        for name, *arguments in script:
            getattr(self, str(name).replace(" ", "_"))(*arguments)
            for n in (0, 1):
                in_flight = sum(piece.rows for taken in self.flying[n] for piece in taken)
                assert self.readers[n].rows_waiting + in_flight + len(self.done[n]) == self.appended

    def finish(self) -> None:
        for n in (0, 1):
            while self.flying[n]:
                self.commit(n)
            self.take(n, self.appended + 1)
            self.commit(n)
        self.spool.close()


# Both fixtures are plain functions: nothing is carried from one example to the next.
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=steps)
def test_each_row_reaches_each_consumer_once_and_then_goes(
    script: list[tuple[object, ...]], rows: Rows, ids: Ids
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd(Path(folder), rows, ids)
        crowd.run(script)
        in_order = not any(step[0] == "take" and step[3] for step in script)
        crowd.finish()
        for done in crowd.done:
            assert (done if in_order else sorted(done)) == list(range(crowd.appended))
        assert crowd.spool.segments == ()
        assert os.listdir(Path(folder) / "q" / "data") == []


def test_many_tiny_segments_become_one_file_and_go_on_as_they_were(
    open_spool: Open, rows: Rows, ids: Ids, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for start in range(0, 50, 10):
        spool.append(rows(start, 10), producer=f"s{start % 20}", arrivals=Arrivals.at(float(start), 10))
    taken = reader.take(45, tmp_path / "cut")
    gathered = reader.gather(taken, tmp_path / "cut")
    assert [len(piece.paths) for piece in gathered] == [1, 0, 0, 0, 0]
    assert ids(gathered) == list(range(45))
    assert gathered[0].sizes == (Path(gathered[0].paths[0]).stat().st_size,)
    assert [(each.segment, each.start, each.rows, each.arrivals, each.event_ranges) for each in gathered] == [
        (each.segment, each.start, each.rows, each.arrivals, each.event_ranges) for each in taken
    ]
    assert len(os.listdir(tmp_path / "cut")) == 1, "the cut one is in it too"
    reader.give_back(gathered)
    assert (reader.rows_waiting, os.listdir(tmp_path / "cut")) == (50, [])
    again = reader.gather(reader.take(50, tmp_path / "cut"), tmp_path / "cut")
    assert ids(again) == list(range(50))
    reader.commit(again)
    reader.release(again)
    assert (os.listdir(tmp_path / "cut"), spool.segments) == ([], ())


def test_few_large_damaged_or_unlike_segments_are_left_as_they_are(
    open_spool: Open, rows: Rows, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")

    def gathered(*tables: pa.Table) -> bool:
        for table in tables:
            spool.append(table)
        taken = reader.take(None, tmp_path)
        again = reader.gather(taken, tmp_path)
        reader.commit(again)
        reader.release(again)
        return again != taken

    tiny = rows(0, 10)
    assert gathered(*[tiny] * 4)
    assert not gathered(*[tiny] * 3)
    assert not gathered(*[rows(0, 20_000)] * 4)
    assert not gathered(tiny, tiny, rows(0, 20_000), tiny, tiny)
    assert not gathered(*[tiny] * 3, tiny.append_column("more", tiny["id"]))
    for batch in range(4):
        pq.write_table(tiny, tmp_path / "moved.parquet")
        spool.publish(spool.adopt_pending([tmp_path / "moved.parquet"], "other", batch).name)
    (spool.path / spool.segments[-1].files[0]).write_bytes(b"no Parquet")
    taken = reader.take(None, tmp_path)
    assert reader.gather(taken, tmp_path) == taken


def test_rows_that_were_just_written_are_not_read_again(
    open_spool: Open, rows: Rows, ids: Ids, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for start in range(0, 50, 10):
        spool.append(rows(start, 10))
    for segment in spool.segments:
        (spool.path / segment.files[0]).unlink()
    gathered = reader.gather(reader.take(None, tmp_path), tmp_path)
    assert ids(gathered) == list(range(50))
    assert [len(piece.paths) for piece in gathered] == [1, 0, 0, 0, 0]


def test_rows_in_memory_and_in_files_are_gathered_though_their_types_differ(
    open_spool: Open, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    table = pa.table({"at": pa.array([1_000, 2_000], pa.timestamp("ns", "UTC"))})
    for _ in range(3):
        spool.append(table)
    pq.write_table(table.cast(pa.schema([("at", pa.timestamp("us", "UTC"))])), tmp_path / "moved.parquet")
    spool.publish(spool.adopt_pending([tmp_path / "moved.parquet"], "other", 0).name)
    gathered = reader.gather(reader.take(None, tmp_path), tmp_path)
    assert [len(piece.paths) for piece in gathered] == [1, 0, 0, 0]
    assert pq.read_table(gathered[0].paths[0])["at"].cast(pa.int64()).to_pylist() == [1, 2] * 4


def test_gathered_files_are_no_larger_than_tasks_can_share(
    open_spool: Open, rows: Rows, ids: Ids, tmp_path: Path
) -> None:
    spool = open_spool()
    reader = spool.subscribe("c")
    for start in range(0, 24_000, 2_000):
        spool.append(rows(start, 2_000))
    gathered = reader.gather(reader.take(None, tmp_path), tmp_path)
    assert ids(gathered) == list(range(24_000))
    assert [place for place, piece in enumerate(gathered) if piece.paths] == [0, 5, 10, 11]
