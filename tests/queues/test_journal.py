"""A stage's journal: one entry, durable as a whole."""

from pathlib import Path

import pytest

from penstock.queues.disk import Disk
from penstock.queues.journal import CorruptJournal, Entry, Journal
from penstock.queues.position import Position


def test_a_journal_that_was_never_written_begins_before_the_first_turn(tmp_path: Path) -> None:
    entry = Journal(tmp_path / "journal.json", Disk()).entry
    assert (entry.batch, entry.grant, entry.grants) == (-1, 0, {})
    assert entry.position("q") == Position()


def test_an_entry_comes_back_as_it_was_written(tmp_path: Path) -> None:
    entry = Entry(
        batch=7,
        grant=3,
        positions={"q": Position(low=5, partial={6: 2}, above=frozenset({8}))},
        grants={3: {"q": ((6, 0, 2),)}, 4: {"q": ((6, 2, 5), (7, 0, 1))}},
        outputs=({"pending": "p-7"},),
        flush=True,
    )
    Journal(tmp_path / "journal.json", Disk()).write(entry)
    again = Journal(tmp_path / "journal.json", Disk()).entry
    assert again == entry


def test_a_crash_while_writing_leaves_the_entry_before(tmp_path: Path) -> None:
    class Crashing(Disk):
        def rename(self, source: Path, target: Path) -> None:
            raise OSError("power lost")

    path = tmp_path / "journal.json"
    Journal(path, Disk()).write(Entry(batch=1))
    with pytest.raises(OSError, match="power lost"):
        Journal(path, Crashing()).write(Entry(batch=2))
    assert Journal(path, Disk()).entry.batch == 1


@pytest.mark.parametrize("length", [0, 1, 20])
def test_a_cut_journal_is_refused_with_its_path(tmp_path: Path, length: int) -> None:
    path = tmp_path / "journal.json"
    Journal(path, Disk()).write(Entry(batch=1))
    path.write_text(path.read_text()[:length])
    with pytest.raises(CorruptJournal) as refused:
        Journal(path, Disk())
    assert refused.value.path == path
    assert str(refused.value).startswith(f"the journal {path} must be JSON as Penstock wrote it, got ")
