"""The grants of a held stage, over a real spool and journal: without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.queues.disk import Disk
from penstock.queues.journal import Journal
from penstock.queues.spool import Spool
from penstock.spark.grant_ledger import GrantLedger
from penstock.spark.inputs import QueueInputs


@dataclass(frozen=True)
class Counting(Disk):
    """Plain files; each one that was replaced is noted."""

    replaced: list[Path] = field(default_factory=list)

    def replace(self, path: Path, content: bytes) -> None:
        self.replaced.append(path)
        super().replace(path, content)


class Books:
    """What Spark is told of the grants."""

    def __init__(self) -> None:
        self.known: list[int] = []

    def add(self, number: int, slices: Any) -> None:
        self.known.append(number)

    def forget_below(self, number: int) -> None:
        self.known = [each for each in self.known if each >= number]


class Held:
    """A stage's ledger, opened anew after a crash by `again`."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.spool = Spool(folder / "spool")
        self._open()

    def _open(self) -> None:
        self.disk, self.books = Counting(), Books()
        self.journal = Journal(self._folder / "journal.json", self.disk)
        consumer = self.spool.subscribe("held", self.journal.entry.position("q"))
        self.inputs = QueueInputs({"q": consumer}, self._folder / "slices")
        self.ledger = GrantLedger(self.journal, self.inputs, self.books)  # type: ignore[arg-type]

    def again(self) -> list[int]:
        """Rows of each grant that is taken again."""
        self.spool.close()
        self.spool = Spool(self._folder / "spool")
        self._open()
        return [sum(piece.rows for piece in slices["q"]) for slices in self.ledger.recover()]

    def grant(self, rows: int) -> None:
        self.spool.append(pa.table({"n": list(range(rows))}))
        self.ledger.add(self.inputs.take(rows))

    def serve(self) -> None:
        """A batch has served all that was granted."""
        batch = self.journal.entry.batch + 1
        self.ledger.commit(self.ledger.outstanding[-1], lambda entry: replace(entry, batch=batch))


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    made = Held(tmp_path)
    yield made
    made.spool.close()


def test_rows_of_the_last_batch_are_kept_until_the_next_one_has_ended(held: Held) -> None:
    held.grant(3)
    held.serve()
    held.grant(5)
    assert held.again() == [3, 5]
    assert held.ledger.outstanding == (2,)
    writes = len(held.disk.replaced)
    held.serve()
    assert len(held.disk.replaced) == writes + 1, "one write for both"
    assert [segment.rows for segment in held.spool.segments] == [3, 5], "not before they are let go"
    held.ledger.let_go()
    assert [segment.rows for segment in held.spool.segments] == [5]
    assert held.books.known == [2]
    assert held.again() == [5]
    assert held.ledger.outstanding == ()
    assert held.inputs.rows_waiting == 0


def test_a_batch_without_rows_gives_up_those_of_the_last_that_had_some(held: Held) -> None:
    held.grant(3)
    held.serve()
    held.ledger.commit(0, lambda entry: replace(entry, batch=1))
    held.ledger.let_go()
    assert held.spool.segments == ()
    assert held.again() == []
    assert (held.journal.entry.batch, held.journal.entry.grant) == (1, 1)


def test_what_no_batch_has_served_is_taken_again(held: Held) -> None:
    held.grant(3)
    held.serve()
    held.grant(5)
    held.grant(7)
    held.ledger.commit(2, lambda entry: entry)
    held.ledger.let_go()
    assert held.again() == [5, 7]
    assert held.ledger.outstanding == (3,)
    assert held.ledger.took.rows == 7
