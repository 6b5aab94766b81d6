"""What a spool refuses, and why. Every error keeps the values its text was made from."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import PenstockError


class SpoolError(PenstockError):
    """Anything a spool refuses."""


class SpoolFull(SpoolError):
    """The size limit leaves no room: nothing was written, and the rows are still the caller's."""

    def __init__(
        self, spool: str, limit_bytes: int, used_bytes: int, wanted_bytes: int, waited_seconds: float
    ):
        self.spool = spool
        self.limit_bytes = limit_bytes
        self.used_bytes = used_bytes
        self.wanted_bytes = wanted_bytes
        self.waited_seconds = waited_seconds
        super().__init__(self._text())

    def _text(self) -> str:
        if self.wanted_bytes > self.limit_bytes:
            return (
                f"an append to spool {self.spool!r} must fit its limit of {self.limit_bytes} bytes, "
                f"got {self.wanted_bytes}: it would never fit; append fewer rows at a time or raise the limit"
            )
        waited = f" after waiting {self.waited_seconds:g} s" if self.waited_seconds else ""
        return (
            f"spool {self.spool!r} may hold {self.limit_bytes} bytes, has {self.used_bytes} and was asked to "
            f"take {self.wanted_bytes} more{waited}: nothing was appended; "
            "append again when its consumers have caught up"
        )


class DiskFull(SpoolFull):
    """The file system has no space left: what was half written is removed, nothing was published."""

    def __init__(self, spool: str, path: Path, wanted_bytes: int):
        self.path = path
        super().__init__(spool, limit_bytes=0, used_bytes=0, wanted_bytes=wanted_bytes, waited_seconds=0.0)

    def _text(self) -> str:
        return (
            f"spool {self.spool!r} needs {self.wanted_bytes} bytes for {self.path}, and the disk is full: "
            "nothing was published and no part of it was left; free some space and try again"
        )


class SpoolClosed(SpoolError):
    """The spool was closed, before or during the call."""

    def __init__(self, spool: str):
        self.spool = spool
        super().__init__(f"spool {spool!r} is closed: nothing was done")


class SpoolInUse(SpoolError):
    """Another owner has the directory open."""

    def __init__(self, path: Path, owner: str):
        self.path = path
        self.owner = owner
        super().__init__(
            f"a spool has one owner at a time, and {path} is in use by process {owner or 'unknown'}: "
            "close it there first, or share its Spool object within that process"
        )


class CorruptSegment(SpoolError):
    """A manifest or a data file is not what was written."""

    def __init__(self, path: Path, rule: str, found: str):
        self.path = path
        self.rule = rule
        self.found = found
        super().__init__(
            f"segment file {path} {rule}, {found}: its rows cannot be trusted; restore the file, or open "
            "the spool with quarantine=True to set the segment aside and go on without its rows"
        )


class PositionAhead(SpoolError):
    """A consumer claims to have read what this spool never held."""

    def __init__(self, spool: str, consumer: str, position: int, newest: int):
        self.spool = spool
        self.consumer = consumer
        self.position = position
        self.newest = newest
        super().__init__(
            f"consumer {consumer!r} of spool {spool!r} must stand at or before its newest segment {newest}, "
            f"got position {position}: the spool was emptied or exchanged, and new rows would be skipped; "
            "restore the spool or start the consumer from Position()"
        )


class SliceOrder(SpoolError):
    """Slices of one segment were not committed, released or given back in an order a position can hold."""

    def __init__(self, consumer: str, action: str, sequence: int, wanted: str, got: str):
        self.consumer = consumer
        self.action = action
        self.sequence = sequence
        super().__init__(
            f"consumer {consumer!r} may {action} rows of segment {sequence} only {wanted}, got {got}: "
            "nothing was changed"
        )
