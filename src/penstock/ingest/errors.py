"""What is refused of rows from outside, and why."""

from __future__ import annotations

from penstock.errors import PenstockError


class BadRows(PenstockError):
    """Rows that do not fit the schema: none of their request is kept. `line` counts from 1."""

    def __init__(self, line: int | None, reason: str):
        self.line = line
        self.reason = reason
        where = "the body" if line is None else f"line {line}"
        super().__init__(f"{where} must fit the schema, but {reason}: nothing of the request was kept")


class KeyReused(PenstockError):
    """An idempotency key that came before, with other rows."""

    def __init__(self, key: str):
        self.key = key
        super().__init__(
            f"an Idempotency-Key must stand for one request, got {key!r} with other rows than before: "
            "nothing was kept; retry with the same body, or use a new key"
        )


class NotTaken(PenstockError):
    """The receiver stops, or could not write: the rows are still the sender's."""
