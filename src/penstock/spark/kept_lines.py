"""A file of JSON lines in the state directory that never grows without bound."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

LIMIT_BYTES = 4_000_000


class KeptLines:
    """Appends to `NAME.jsonl`; once that is full it becomes `NAME.1.jsonl` in place of the one before."""

    def __init__(self, folder: Path, name: str, limit_bytes: int = LIMIT_BYTES):
        self._path = folder / f"{name}.jsonl"
        self._older = folder / f"{name}.1.jsonl"
        self._limit_bytes = limit_bytes

    def add(self, lines: Iterable[dict[str, Any]]) -> None:
        if self._path.exists() and self._path.stat().st_size > self._limit_bytes:
            self._path.replace(self._older)
        with self._path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def read(self) -> Iterator[dict[str, Any]]:
        """All lines that are kept, oldest first; one that a crash cut short is passed over."""
        for path in (self._older, self._path):
            if not path.exists():
                continue
            with path.open(errors="replace") as lines:
                for line in lines:
                    with contextlib.suppress(ValueError):
                        read = json.loads(line)
                        if isinstance(read, dict):
                            yield read
