"""The durable ledger of privacy budgets: what subjects have spent on each product, and what was released."""

from __future__ import annotations

import fcntl
import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from penstock.errors import PenstockError

WAIT_SECONDS = 60.0
# Whole numbers of a billionth: sums of them are exact, so that a budget is met to the last digit.
_UNITS = 1_000_000_000

_TABLES = """
CREATE TABLE IF NOT EXISTS ledger (epsilon INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS spent (
    product TEXT NOT NULL, subject TEXT NOT NULL, epsilon INTEGER NOT NULL, PRIMARY KEY (product, subject)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS release (
    id TEXT PRIMARY KEY, product TEXT NOT NULL, epsilon INTEGER NOT NULL,
    subjects INTEGER NOT NULL, released TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS admitted (
    release TEXT NOT NULL, subject TEXT NOT NULL, PRIMARY KEY (release, subject)
) WITHOUT ROWID;
"""

Values = Sequence[int | float | None]


class BudgetError(PenstockError):
    """A ledger that cannot be used; nothing is released."""


@dataclass(frozen=True)
class Charge:
    """What became of a charge: the subjects that could pay, or the values if the release was made before."""

    asked: int
    admitted: frozenset[str]
    released: Values | None = None

    @property
    def refused(self) -> bool:
        """Whether there were subjects, and none of them could pay."""
        return self.asked > 0 and not self.admitted


@dataclass(frozen=True)
class Budget:
    """At most `epsilon` for each subject and product, for ever, over all processes that open this `path`.

    The ledger is an SQLite file on a disk of this machine (not a network share). It holds the subjects as
    they are given: who is to stay unknown gets a pseudonym before, one that does not change with time.
    """

    path: str | Path
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).absolute())
        checked_epsilon(self.epsilon, "budget")
        self._make()
        with self._writing() as ledger:
            known = ledger.execute("SELECT epsilon FROM ledger").fetchone()
            if known is None:
                ledger.execute("INSERT INTO ledger VALUES (?)", (self._limit,))
        if known is not None and known[0] != self._limit:
            raise BudgetError(
                f"the budget of the ledger {self.path} must be the one it was made with, epsilon "
                f"{known[0] / _UNITS:g}, got {self.epsilon:g}: what was spent would no longer be bounded"
            )

    def _make(self) -> None:
        """Alone: where two change how the file is journalled, SQLite gives up instead of waiting."""
        try:
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            with self._ledger() as ledger:
                ledger.execute("PRAGMA journal_mode=WAL")
                ledger.executescript(_TABLES)
        finally:
            os.close(lock)

    @property
    def _limit(self) -> int:
        return math.floor(_units(self.epsilon))

    def charge(self, release: str, product: str, subjects: Iterable[str], epsilon: float) -> Charge:
        """Charges every subject that can still pay, all in one step; durable when it returns.

        A release that was charged before is not charged again, whoever is named this time.
        """
        cost = math.ceil(_units(checked_epsilon(epsilon, "epsilon of a release")))
        asked = sorted(set(subjects))
        with self._writing() as ledger:
            before = self._before(ledger, release)
            if before is not None:
                return before
            ledger.execute("CREATE TEMP TABLE asked (subject TEXT PRIMARY KEY) WITHOUT ROWID")
            ledger.executemany("INSERT INTO asked VALUES (?)", [(each,) for each in asked])
            self._admit(ledger, release, product, cost)
            ledger.execute(
                "INSERT INTO release VALUES (?, ?, ?, ?, NULL)", (release, product, cost, len(asked))
            )
            return Charge(len(asked), self._admitted(ledger, release))

    def _admit(self, ledger: sqlite3.Connection, release: str, product: str, cost: int) -> None:
        ledger.execute(
            "INSERT INTO admitted SELECT ?, asked.subject FROM asked LEFT JOIN spent "
            "ON spent.product = ? AND spent.subject = asked.subject "
            "WHERE coalesce(spent.epsilon, 0) + ? <= ?",
            (release, product, cost, self._limit),
        )
        ledger.execute(
            "INSERT INTO spent SELECT ?, subject, ? FROM admitted WHERE release = ? "
            "ON CONFLICT DO UPDATE SET epsilon = spent.epsilon + excluded.epsilon",
            (product, cost, release),
        )

    def _before(self, ledger: sqlite3.Connection, release: str) -> Charge | None:
        query = "SELECT subjects, released FROM release WHERE id = ?"
        found = ledger.execute(query, (release,)).fetchone()
        if found is None:
            return None
        released = None if found[1] is None else tuple(json.loads(found[1]))
        return Charge(found[0], self._admitted(ledger, release), released)

    def _admitted(self, ledger: sqlite3.Connection, release: str) -> frozenset[str]:
        query = "SELECT subject FROM admitted WHERE release = ?"
        return frozenset(subject for (subject,) in ledger.execute(query, (release,)))

    def released(self, release: str) -> Values | None:
        """The values of a release that was made before."""
        with self._ledger() as ledger:
            found = ledger.execute("SELECT released FROM release WHERE id = ?", (release,)).fetchone()
        return None if found is None or found[0] is None else tuple(json.loads(found[0]))

    def keep(self, release: str, values: Values) -> Values:
        """The values to publish for a release that was charged: these, or those of whoever came first."""
        text = json.dumps(list(values), allow_nan=False)
        with self._writing() as ledger:
            ledger.execute(
                "UPDATE release SET released = ? WHERE id = ? AND released IS NULL", (text, release)
            )
            found = ledger.execute("SELECT released FROM release WHERE id = ?", (release,)).fetchone()
            if found is None:
                raise BudgetError(
                    f"a release must be charged before it is kept, got {release!r}: it is not released"
                )
            # Who paid is only asked while the values are not known yet.
            ledger.execute("DELETE FROM admitted WHERE release = ?", (release,))
        return tuple(json.loads(found[0]))

    def spent(self, product: str, subject: str) -> float:
        """What the subject has spent on the product: for who keeps the ledger, not for who gets the data."""
        query = "SELECT epsilon FROM spent WHERE product = ? AND subject = ?"
        with self._ledger() as ledger:
            found = ledger.execute(query, (product, subject)).fetchone()
        return 0.0 if found is None else found[0] / _UNITS

    def share_spent(self, product: str) -> float:
        """What the subject that has spent most on the product has spent of the budget, from 0 to 1."""
        with self._ledger() as ledger:
            found = ledger.execute("SELECT max(epsilon) FROM spent WHERE product = ?", (product,)).fetchone()
        return (found[0] or 0) / self._limit

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer runs beside; nothing of it is left where it fails."""
        with self._ledger() as ledger:
            ledger.execute("BEGIN IMMEDIATE")
            try:
                yield ledger
            except BaseException:
                ledger.execute("ROLLBACK")
                raise
            ledger.execute("COMMIT")

    @contextmanager
    def _ledger(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each use: threads and forked processes must not share one."""
        try:
            # Without making it: a ledger that was removed must not begin anew by itself.
            address = f"{Path(self.path).as_uri()}?mode=rw"
            ledger = sqlite3.connect(address, timeout=WAIT_SECONDS, isolation_level=None, uri=True)
            try:
                ledger.execute("PRAGMA synchronous=FULL")
                yield ledger
            finally:
                ledger.close()
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> BudgetError:
        return BudgetError(
            f"the budget ledger {self.path} must be readable and writable, but {error}: nothing is released"
        )


def _units(epsilon: float) -> Decimal:
    """As it is written: 0.29 is 290,000,000 units, where 0.29 * 1e9 may be a little less."""
    return Decimal(repr(float(epsilon))) * _UNITS


def checked_epsilon(epsilon: float, subject: str) -> float:
    """An epsilon that noise can be calibrated to."""
    if not (isinstance(epsilon, (int, float)) and 1 / _UNITS <= epsilon <= 1e6):
        raise BudgetError(
            f"the {subject} must be an epsilon from 1e-09 to 1e+06, got {epsilon!r}: "
            "it is no promise that noise could keep"
        )
    return float(epsilon)
