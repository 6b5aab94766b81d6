"""The file operations of a spool, each one step of its crash safety, so that a test can fail any of them."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Disk:
    """Plain files. With `fsync` each step is on the medium when it returns, directory entries included."""

    fsync: bool = False

    def write(self, path: Path, content: bytes | memoryview) -> None:
        """A new file, whole; a write that fails leaves none behind."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                self._write_all(descriptor, memoryview(content))
                if self.fsync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
        self._sync(path.parent)

    def _write_all(self, descriptor: int, rest: memoryview) -> None:
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def rename(self, source: Path, target: Path) -> None:
        """Replaces `target` in one step."""
        os.replace(source, target)
        self._sync(target.parent)

    def move_in(self, source: Path, target: Path) -> None:
        """As rename, or as a copy from another file system."""
        try:
            os.replace(source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy(source, target)
        if self.fsync:
            self._sync_file(target)
        self._sync(target.parent)

    def _copy(self, source: Path, target: Path) -> None:
        try:
            shutil.copyfile(source, target)
        except OSError:
            target.unlink(missing_ok=True)
            raise
        source.unlink()

    def stamp(self, path: Path, time: float) -> None:
        """Sets the modification time: it is carried along by a rename and needs no write."""
        nanoseconds = round(time * 1e6) * 1_000
        os.utime(path, ns=(nanoseconds, nanoseconds))

    def remove(self, path: Path) -> None:
        """Removes a file; one that is gone already is fine."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def _sync_file(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _sync(self, folder: Path) -> None:
        if self.fsync:
            self._sync_file(folder)

    def replace(self, path: Path, content: bytes) -> None:
        """A file with new content, in one step: after a crash it holds either the old or the new."""
        fresh = path.with_name(f"{path.name}.new")
        self.write(fresh, content)
        self.rename(fresh, path)
