"""One owner for one directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from penstock.queues.errors import SpoolInUse


class OwnerLock:
    """An operating system lock on a directory; it ends with the process that holds it, however that ends."""

    def __init__(self, path: Path):
        path.mkdir(parents=True, exist_ok=True)
        self._file: int | None = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            self.release()
            raise SpoolInUse(path, owner) from None
        os.ftruncate(self._file, 0)
        # The number only serves the error text; a full disk must not keep a spool from opening.
        with contextlib.suppress(OSError):
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
