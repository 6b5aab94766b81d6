"""Who allows whom to use their data, for what, and at which times of day: a table that may change."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import time
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.pipeline.latency import Duration, parse_not_negative
from penstock.queues.disk import Disk

_REQUIRED = ("subject", "consumer", "purposes")
_FIELDS = (*_REQUIRED, "from", "to")
_TIME = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]")
_DISK = Disk(fsync=True)


class PolicyError(PenstockError, ValueError):
    """A policy that cannot hold as it is written."""


class PolicyTableError(PenstockError):
    """A table of policies that cannot be read: nobody is allowed."""


@dataclass(frozen=True)
class Policy:
    """The subject allows the consumer to use its rows for these purposes, from `from_time` until `to_time`.

    Times of day are "HH:MM" or datetime.time; the first is part of the interval, the last is not, and an
    interval may go over midnight. Without them the policy holds all day. Names are compared as they are: no
    wildcards, and `a` is not `A`.
    """

    subject: str
    consumer: str
    purposes: Sequence[str]
    from_time: str | time | None = None
    to_time: str | time | None = None

    def __post_init__(self) -> None:
        given = (self.purposes,) if isinstance(self.purposes, str) else tuple(self.purposes)
        object.__setattr__(self, "purposes", given)
        for name, text in (("subject", self.subject), ("consumer", self.consumer)):
            if not isinstance(text, str) or not text:
                raise PolicyError(
                    f"the {name} of a policy must be a text, got {text!r}: it would allow nobody"
                )
        if not given or not all(isinstance(each, str) and each for each in given):
            raise PolicyError(
                f"the purposes of a policy must be texts, one or more, got {given!r}: it would allow nothing"
            )
        for field in ("from_time", "to_time"):
            object.__setattr__(self, field, _minute(getattr(self, field)))
        if (self.from_time or "00:00") == self.to_time:
            raise PolicyError(
                f"from_time and to_time of a policy must differ, got {self.to_time} for both: "
                "it could mean all day or never"
            )

    def without(self, purposes: Sequence[str]) -> Policy | None:
        """What is left of the policy without these purposes."""
        left = [each for each in self.purposes if each not in purposes]
        return replace(self, purposes=left) if left else None

    def to_json(self) -> str:
        fields: dict[str, Any] = {
            "subject": self.subject,
            "consumer": self.consumer,
            "purposes": list(self.purposes),
        }
        times = {"from": self.from_time, "to": self.to_time}
        fields.update({name: at for name, at in times.items() if at is not None})
        return json.dumps(fields)

    @classmethod
    def from_json(cls, line: str) -> Policy:
        """The policy of a line; one with an unknown field is refused, as it might narrow the policy."""
        fields = dict(_distinct(json.loads(line, object_pairs_hook=_Pairs)))
        unknown = [name for name in fields if name not in _FIELDS]
        missing = [name for name in _REQUIRED if name not in fields]
        if unknown or missing:
            raise PolicyError(
                f"a policy must have the fields {', '.join(_FIELDS)}, the last two as wanted, "
                f"got {', '.join(fields)}: it is not known what it allows"
            )
        if not isinstance(fields["purposes"], list):
            raise PolicyError(
                f"the purposes of a policy must be a list, got {fields['purposes']!r}: it would allow nothing"
            )
        return cls(
            fields["subject"], fields["consumer"], fields["purposes"], fields.get("from"), fields.get("to")
        )


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it stands, doubled names included."""


def _distinct(found: Any) -> _Pairs:
    if not isinstance(found, _Pairs):
        raise PolicyError(f"a policy must be a JSON object, got {found!r}: it is not known what it allows")
    if len({name for name, _ in found}) < len(found):
        raise PolicyError("a policy must name each field once, got one twice: it is not known which holds")
    return found


def _minute(given: str | time | None) -> str | None:
    if given is None:
        return None
    at = given.isoformat().removesuffix(":00") if isinstance(given, time) else given
    if isinstance(at, str) and _TIME.fullmatch(at):
        return at
    raise PolicyError(f'a time of day must be "HH:MM", got {given!r}: it is not known when the policy holds')


@dataclass(frozen=True)
class PolicyTable:
    """Policies in a file of JSON lines, which is always replaced as a whole; its folder must be there.

    Pipelines look at the file at most every `refresh`: a change holds in every turn that starts later than
    that after it. Several processes may write: each waits for its turn. Where tasks run on several machines,
    all must see the file.
    """

    path: str | Path
    refresh: Duration = "1s"

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).absolute())
        self.refresh_seconds  # noqa: B018  refuses what is no length of time

    @property
    def refresh_seconds(self) -> float:
        return parse_not_negative(self.refresh, "refresh of a policy table", "changes would never be seen")

    def write(self, policies: Iterable[Policy]) -> None:
        """Replaces all policies by these."""
        with self._alone():
            self._replace(policies)

    def allow(self, *policies: Policy) -> None:
        """Adds policies; what one of them allows is allowed."""
        self._change(lambda known: dict.fromkeys([*known, *policies]), new=True)

    def revoke(
        self, subject: str, consumer: str | None = None, purposes: str | Sequence[str] | None = None
    ) -> int:
        """Takes back what the subject allowed: to one consumer or to all, for these purposes or for all.

        Gives the number of policies that were changed or removed. The change is on disk when it returns.
        """
        taken = (purposes,) if isinstance(purposes, str) else purposes
        changed = 0

        def left(known: list[Policy]) -> Iterator[Policy]:
            nonlocal changed
            for policy in known:
                hit = policy.subject == subject and consumer in (None, policy.consumer)
                rest = policy if not hit else None if taken is None else policy.without(taken)
                changed += rest != policy
                if rest is not None:
                    yield rest

        self._change(left)
        return changed

    def read(self) -> list[Policy]:
        """All policies, as they are now."""
        try:
            lines = Path(self.path).read_bytes().decode().split("\n")
        except (OSError, UnicodeError) as error:
            raise PolicyTableError(
                f"the policy table {self.path} must be readable, but {error}: nobody is allowed"
            ) from error
        return [self._policy(number, line) for number, line in enumerate(lines, 1) if line.strip()]

    def _policy(self, number: int, line: str) -> Policy:
        try:
            return Policy.from_json(line)
        except ValueError as error:
            raise PolicyTableError(
                f"line {number} of the policy table {self.path} must be a policy, but {error}: "
                "nobody is allowed"
            ) from error

    def _change(self, change: Callable[[list[Policy]], Iterable[Policy]], *, new: bool = False) -> None:
        """Reads, changes and replaces the table, while no other writer does."""
        with self._alone():
            self._replace(change([] if new and not Path(self.path).exists() else self.read()))

    def _replace(self, policies: Iterable[Policy]) -> None:
        lines = [policy.to_json() + "\n" for policy in policies]
        _DISK.replace(Path(self.path), "".join(lines).encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        # A file beside the table: the table itself is replaced, and with it a lock on it would go.
        lock = Path(self.path).with_name(f"{Path(self.path).name}.lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
