"""A crash at any step or byte leaves a segment wholly there or not at all; damage is named, never read."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.queues import CorruptSegment, DiskFull, Position, Slice, Spool
from penstock.queues.disk import Disk

Rows = Callable[[int, int], pa.Table]
Ids = Callable[[tuple[Slice, ...]], list[int]]
Open = Callable[..., Spool]


class Crash(BaseException):
    """The process ends here: nothing after it happens."""


@dataclass(frozen=True)
class CrashingDisk(Disk):
    """Does `left[0]` steps; the next one, done by half if it is a write, and all later ones crash."""

    left: list[int] = field(default_factory=list)

    def _step(self) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise Crash

    def write(self, path: Path, content: bytes | memoryview) -> None:
        if self.left[0] == 0:
            path.write_bytes(memoryview(content)[: len(content) // 2])
        self._step()
        super().write(path, content)

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)

    def move_in(self, source: Path, target: Path) -> None:
        self._step()
        super().move_in(source, target)

    def stamp(self, path: Path, time: float) -> None:
        self._step()
        super().stamp(path, time)

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)


@dataclass(frozen=True)
class FullDisk(Disk):
    """Has room for `left[0]` more bytes, counted as they are written."""

    left: list[int] = field(default_factory=list)

    def _write_all(self, descriptor: int, rest: memoryview) -> None:
        super()._write_all(descriptor, rest[: self.left[0]])
        if len(rest) > self.left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left[0] -= len(rest)


def steps_of(work: Callable[[Disk], object]) -> range:
    """Every number of steps after which `work` can crash."""
    disk = CrashingDisk(left=[1_000])
    work(disk)
    return range(1_000 - disk.left[0])


def folder_is_tidy(spool: Spool) -> bool:
    named = {file for segment in spool.segments for file in segment.files}
    named |= {file for pending in spool.pending for file in pending.files}
    held = {f"data/{name}" for name in os.listdir(spool.path / "data")}
    return held == named and not list((spool.path / "pending").glob("*.tmp"))


def test_a_crash_at_any_step_of_an_append_leaves_all_of_it_or_nothing(
    tmp_path: Path, rows: Rows, ids: Ids
) -> None:
    def work(path: Path, disk: Disk) -> Spool:
        spool = Spool(path, disk=disk)
        spool.append(rows(0, 3))
        return spool

    outcomes = set()
    for step in steps_of(lambda disk: work(tmp_path / "count", disk).close()):
        path = tmp_path / str(step)
        with Spool(path) as spool:
            spool.append(rows(100, 1))
        crashing = Spool(path, disk=CrashingDisk(left=[step]))
        with pytest.raises(Crash):
            crashing.append(rows(0, 3))
        crashing.close()
        with Spool(path) as spool:
            assert folder_is_tidy(spool)
            outcomes.add(tuple(ids(spool.subscribe("c").take(None, tmp_path))))
            assert spool.append(rows(0, 3)).sequence == len(spool.segments)
    assert outcomes == {(100,)}


def test_a_crash_at_any_step_of_a_turn_is_redone_without_loss_or_doubling(
    tmp_path: Path, rows: Rows, ids: Ids
) -> None:
    def turn(spool: Spool) -> None:
        if spool.last_batch("p") == 0:
            return
        if not spool.pending:
            spool.write_pending(rows(0, 3), "p", 0)
        spool.publish("p-0")

    def counted(disk: Disk) -> None:
        with Spool(tmp_path / "count", disk=disk) as spool:
            turn(spool)

    for step in steps_of(counted):
        crashing = Spool(tmp_path / str(step), disk=CrashingDisk(left=[step]))
        with pytest.raises(Crash):
            turn(crashing)
        crashing.close()
        with Spool(tmp_path / str(step)) as spool:
            turn(spool)
            assert folder_is_tidy(spool)
            assert ids(spool.subscribe("c").take(None, tmp_path)) == [0, 1, 2]


def test_a_crash_at_any_step_of_adopting_files_leaves_a_whole_segment_or_none(
    tmp_path: Path, rows: Rows
) -> None:
    def adopt(name: str, disk: Disk) -> None:
        files = [tmp_path / f"{name}-{part}" for part in range(2)]
        for part, file in enumerate(files):
            pq.write_table(rows(part, 1), file)
        spool = Spool(tmp_path / name, disk=disk)
        try:
            spool.adopt_pending(files, "p", 0)
        finally:
            spool.close()

    for step in steps_of(lambda disk: adopt("count", disk)):
        with pytest.raises(Crash):
            adopt(str(step), CrashingDisk(left=[step]))
        with Spool(tmp_path / str(step)) as spool:
            assert folder_is_tidy(spool)
            assert spool.pending == ()


def test_a_crash_at_any_step_of_a_removal_keeps_numbers_and_what_is_left_is_whole(
    tmp_path: Path, rows: Rows, ids: Ids
) -> None:
    def consume(path: Path, disk: Disk) -> None:
        with Spool(path) as spool:
            for number in range(3):
                spool.append(rows(number, 1), producer="ab"[number % 2])
        spool = Spool(path, disk=disk)
        try:
            reader = spool.subscribe("c")
            taken = reader.take(None, tmp_path)
            reader.commit(taken)
            reader.release(taken)
        finally:
            spool.close()

    for step in steps_of(lambda disk: consume(tmp_path / "count", disk)):
        with pytest.raises(Crash):
            consume(tmp_path / str(step), CrashingDisk(left=[step]))
        with Spool(tmp_path / str(step)) as spool:
            assert folder_is_tidy(spool)
            assert (spool.last_batch("a"), spool.last_batch("b")) == (1, 0)
            assert spool.subscribe("c", Position(low=3)).rows_waiting == 0
            left = ids(spool.subscribe("late").take(None, tmp_path))
            assert left == list(range(3 - len(left), 3))
            assert spool.append(rows(0, 1), producer="a").sequence == 4


@pytest.mark.parametrize("beyond_data", [None, -1, 0, 1, 100])
def test_a_full_disk_publishes_nothing_and_leaves_nothing(
    tmp_path: Path, rows: Rows, beyond_data: int | None
) -> None:
    with Spool(tmp_path / "count") as spool:
        space = 0 if beyond_data is None else spool.append(rows(0, 3)).bytes + beyond_data
    disk = FullDisk(left=[space])
    with Spool(tmp_path / "q", disk=disk, limit_bytes=100_000) as spool:
        for write in (lambda: spool.append(rows(0, 3)), lambda: spool.write_pending(rows(0, 3), "p", 0)):
            disk.left[0] = space
            with pytest.raises(DiskFull, match=r"spool 'q' needs \d+ bytes for .*, and the disk is full: no"):
                write()
        assert (spool.segments, spool.pending, spool.free_bytes) == ((), (), 100_000)
        assert os.listdir(spool.path / "data") == os.listdir(spool.path / "pending") == []
        disk.left[0] = 100_000
        assert spool.append(rows(0, 3)).sequence == 1


def test_files_that_a_full_disk_kept_out_can_be_adopted_later(tmp_path: Path, rows: Rows) -> None:
    disk = FullDisk(left=[10])
    pq.write_table(rows(0, 3), tmp_path / "part")
    with Spool(tmp_path / "q", disk=disk) as spool:
        with pytest.raises(DiskFull):
            spool.adopt_pending([tmp_path / "part"], "p", 0)
        disk.left[0] = 10_000
        assert spool.adopt_pending([tmp_path / "part"], "p", 0).rows == 3


def test_a_full_disk_still_lets_segments_go(tmp_path: Path, rows: Rows) -> None:
    disk = FullDisk(left=[10_000])
    with Spool(tmp_path / "q", disk=disk) as spool:
        reader = spool.subscribe("c")
        spool.append(rows(0, 3))
        disk.left[0] = 0
        with pytest.raises(DiskFull):
            reader.take(2, tmp_path / "cut")
        assert (reader.rows_waiting, os.listdir(tmp_path / "cut")) == (3, [])
        taken = reader.take(3, tmp_path)
        reader.commit(taken)
        reader.release(taken)
        assert os.listdir(spool.path / "data") == []


def test_a_manifest_cut_short_at_any_byte_is_refused_by_name(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    spool.append(rows(0, 3))
    spool.close()
    manifest = next((spool.path / "segments").iterdir())
    whole = manifest.read_bytes()
    for length in range(len(whole) - 1):  # the last byte is a line feed and says nothing
        manifest.write_bytes(whole[:length])
        with pytest.raises(CorruptSegment) as refusal:
            Spool(spool.path)
        assert refusal.value.path == manifest
    manifest.write_bytes(whole)
    assert open_spool().rows == 3


def test_a_changed_digit_in_a_manifest_is_found(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    spool.append(rows(0, 3))
    manifest = next((spool.path / "segments").iterdir())
    manifest.write_bytes(manifest.read_bytes().replace(b'"rows": 3', b'"rows": 4'))
    with pytest.raises(
        CorruptSegment, match=r"must match its checksum [0-9a-f]{8}, got [0-9a-f]{8}: its rows"
    ):
        open_spool()


def test_a_data_file_cut_short_at_any_byte_is_refused_by_name(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    segment = spool.append(rows(0, 3))
    spool.close()
    file = spool.path / segment.files[0]
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        with pytest.raises(CorruptSegment) as refusal:
            Spool(spool.path)
        assert str(refusal.value) == (
            f"segment file {file} must have {len(whole)} bytes, got {length}: its rows cannot be trusted; "
            "restore the file, or open the spool with quarantine=True to set the segment aside "
            "and go on without its rows"
        )
        assert file.exists()


@pytest.mark.parametrize("folder", ["segments", "pending"])
def test_a_missing_data_file_is_refused_by_name(open_spool: Open, rows: Rows, folder: str) -> None:
    spool = open_spool()
    written = spool.append(rows(0, 3)) if folder == "segments" else spool.write_pending(rows(0, 3), "p", 0)
    (spool.path / written.files[0]).unlink()
    with pytest.raises(
        CorruptSegment, match=f"{written.files[0]} must have {written.bytes} bytes, but is missing"
    ):
        open_spool()


def test_a_damaged_footer_among_the_newest_is_refused_by_name(open_spool: Open, rows: Rows) -> None:
    spool = open_spool()
    file = spool.path / spool.append(rows(0, 3)).files[0]
    file.write_bytes(file.read_bytes()[:-20] + b"\0" * 20)
    with pytest.raises(CorruptSegment, match=f"{file} must be whole Parquet, its footer cannot be read"):
        open_spool()


def test_quarantine_sets_damage_aside_reports_it_and_never_reuses_its_number(
    open_spool: Open, rows: Rows, ids: Ids, files_in: Callable[[str], list[str]], tmp_path: Path
) -> None:
    spool = open_spool()
    segments = [spool.append(rows(number * 10, 2)) for number in range(4)]
    (spool.path / "segments" / "000000000002-append-1.json").write_text("{")
    (spool.path / segments[3].files[0]).write_bytes(b"PAR1")
    spool = open_spool(quarantine=True)
    assert [error.path.name for error in spool.quarantined] == [
        "000000000002-append-1.json",
        Path(segments[3].files[0]).name,
    ]
    expected = ["000000000002-append-1.json", "000000000004-append-3.json"]
    expected += [Path(segments[number].files[0]).name for number in (1, 3)]
    assert files_in("quarantine") == sorted(expected)
    spool = open_spool()
    reader = spool.subscribe("c")
    segment = spool.append(rows(40, 1))
    assert (segment.sequence, segment.batch) == (5, 4)
    taken = reader.take(None, tmp_path)
    assert ids(taken) == [0, 1, 20, 21, 40]
    assert reader.commit(taken) == Position(low=5)


def test_a_process_killed_while_appending_leaves_whole_segments(tmp_path: Path, rows: Rows, ids: Ids) -> None:
    script = (
        "import sys, itertools, pyarrow as pa\n"
        "from penstock.queues import Spool\n"
        "spool = Spool(sys.argv[1])\n"
        "for n in itertools.count(spool.rows // 3):\n"
        "    spool.append(pa.table({'id': range(3 * n, 3 * n + 3)}))\n"
        "    print(n, flush=True)\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    for kill_after in (5, 17):
        with subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "q")],
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            acknowledged = [int(process.stdout.readline()) for _ in range(kill_after)][-1]
            process.send_signal(signal.SIGKILL)
        with Spool(tmp_path / "q") as spool:
            assert folder_is_tidy(spool)
            numbers = ids(spool.subscribe("c").take(None, tmp_path))
            assert numbers == list(range(len(numbers)))
            assert len(numbers) >= 3 * (acknowledged + 1)


def test_synced_spools_behave_the_same(tmp_path: Path, rows: Rows, ids: Ids) -> None:
    with Spool(tmp_path / "q", fsync=True) as spool:
        reader = spool.subscribe("c")
        spool.append(rows(0, 3))
        taken = reader.take(None, tmp_path)
        assert ids(taken) == [0, 1, 2]
        reader.commit(taken)
        reader.release(taken)
        assert spool.segments == ()
