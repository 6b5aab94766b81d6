"""Where keys lie: this, never a key, is what operators, plans and tasks carry."""

from __future__ import annotations

import base64
import binascii
import os
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.operators.privacy.key_handover import FUNCTION, Asker, KeysError, hand_over
from penstock.pipeline.latency import Duration, parse_positive
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARIABLE, _FILE = "environment variable", "file"
_NAME_OF_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, repr=False)
class Keys:
    """A ring of keys by the place where it lies: made with `from_env`, `from_file` or `from_callable`.

    A ring is {"current": "k2", "keys": {"k1": "<32 bytes in base64>", "k2": ...}}, as JSON where it is
    text, or one key in base64, which then has the id k1. "from": {"k2": "2026-12-01T00:00:00Z"} may say
    from which event time on pseudonyms are made with a key. No key is ever kept in this object.
    """

    kind: str
    name: str
    refresh_seconds: float
    function: Callable[[], Any] | None = field(default=None, compare=False)

    @classmethod
    def from_env(cls, name: str) -> Keys:
        """The ring in an environment variable, as it is when the operator is put into a pipeline.

        Executors on other machines have to find it in an environment of their own.
        """
        if not _NAME_OF_VARIABLE.fullmatch(name) or _looks_like_a_key(name):
            raise KeysError(
                "keys: from_env must be given the name of a variable, got another text, which is not shown "
                "as it may be a key: nothing can be read there"
            )
        return cls(_VARIABLE, name, 1.0)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, refresh: Duration = "1s") -> Keys:
        """The ring in a file that its owner alone can read (chmod 600), read again after each `refresh`.

        Every executor reads the same path. Replace the file by renaming another onto it.
        """
        if _looks_like_a_key(Path(path).name):
            raise KeysError(
                "keys: from_file must be given a path, got what looks like a key and is not shown: "
                "nothing can be read there"
            )
        return cls(_FILE, str(Path(path).absolute()), _refresh_seconds(refresh))

    @classmethod
    def from_callable(cls, function: Callable[[], Any], *, refresh: Duration = "1s") -> Keys:
        """The ring that a function returns, asked again after each `refresh`; keys may be `bytes` there.

        For sessions in local mode only: its keys go into the memory of the driver's JVM and nowhere else.
        """
        if not callable(function):
            raise KeysError(
                f"keys: from_callable must be given a function, got a {type(function).__name__}: "
                "it could not be asked again"
            )
        return cls(FUNCTION, uuid.uuid4().hex, _refresh_seconds(refresh), function)

    def place(self, session: SparkSession) -> Any:
        """What Java functions carry to find the ring; in local mode it has been read once, as a check."""
        is_local = session.sparkContext._jsc.sc().isLocal()
        if self.function is not None:
            self._ask(session, is_local)
        elif self.kind == _VARIABLE and is_local and self.name in os.environ:
            # The JVM knows the environment of its own start alone.
            _check(hand_over(session, self.kind, self.name, os.environ[self.name]))
        place = jvm(session).penstock.KeyPlace(self.kind, self.name, int(self.refresh_seconds * 1e9))
        _check(place.problem() if is_local else None)
        return place

    def _ask(self, session: SparkSession, is_local: bool) -> None:
        assert self.function is not None
        if not is_local:
            raise KeysError(
                "keys: from_callable must be used in local mode, got a session with executors of their own: "
                "they could not ask the function. Use from_file or from_env"
            )
        Asker(session, self.name, self.function, self.refresh_seconds).start()

    def __repr__(self) -> str:
        if self.kind == FUNCTION:
            return "Keys.from_callable(...)"
        return f"Keys.{'from_env' if self.kind == _VARIABLE else 'from_file'}({self.name!r})"

    def __reduce__(self) -> tuple[type[Keys], tuple[str, str, float]]:
        if self.function is not None:
            raise KeysError(
                "keys: a ring of a function must stay in its process, got a request to pickle it: "
                "the keys could leave with the function"
            )
        return Keys, (self.kind, self.name, self.refresh_seconds)


def _refresh_seconds(refresh: Duration) -> float:
    return parse_positive(refresh, "refresh of keys", "they could never be read")


def _check(problem: str | None) -> None:
    if problem is not None:
        raise KeysError(problem)


def _looks_like_a_key(text: str) -> bool:
    """Whether it is 32 bytes in base64 or hexadecimal: such a text must not come into a message."""
    if re.fullmatch(r"[0-9a-fA-F]{64}", text):
        return True
    try:
        return len(base64.b64decode(text + "=" * (-len(text) % 4), validate=True)) == 32
    except (binascii.Error, ValueError):
        return False
