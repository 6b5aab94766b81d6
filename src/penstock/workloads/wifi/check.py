"""The same data products in plain Python, from the rows that were fed, in the order of their event time."""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

from penstock.operators.privacy.policies import Policy
from penstock.workloads.wifi.sharing import PRODUCTS, Product

Row = Mapping[str, Any]
Move = tuple[str, str]
"""From one building to another."""
CERTAINTY = 1e-9
"""How likely it is that a check of noise fails although all is right."""


@dataclass(frozen=True)
class Checked:
    """All products of some rows, subjects and places by their names, before noise, pseudonyms and keys."""

    rows: Sequence[Row]
    policies: Sequence[Policy]
    places: Mapping[str, str]
    exposed: Collection[str] = ()

    def exposure(self, within: timedelta = timedelta(minutes=15)) -> list[Row]:
        """Those who came to an access point after somebody exposed: subject, ap, at, exposed_at."""
        last: dict[str, datetime] = {}
        found: list[Row] = []
        for row in self.shared("exposure"):
            if row["subject"] in self.exposed:
                last[row["ap"]] = row["at"]
            elif row["ap"] in last and row["at"] - last[row["ap"]] <= within:
                found.append({**_only(row, "subject", "ap", "at"), "exposed_at": last[row["ap"]]})
        return found

    def concierge(self) -> list[Row]:
        """Where those are who want to be found: subject, ap, at."""
        return [_only(row, "subject", "ap", "at") for row in self.shared("concierge")]

    def archive(self, step: timedelta) -> list[Row]:
        """All fields, with `at` at the beginning of its step of time."""
        return [{**row, "at": floor_time(row["at"], step)} for row in self.shared("archive")]

    def moves(self) -> list[tuple[datetime, Move, str]]:
        """When who went from where to where."""
        here: dict[str, str] = {}
        found = []
        for row in self.shared("flow"):
            building = self.places[row["ap"]]
            before = here.get(row["subject"], building)
            here[row["subject"]] = building
            if before != building:
                found.append((row["at"], (before, building), row["subject"]))
        return found

    def flow(self, size: timedelta, buildings_each: int) -> dict[datetime, dict[str, int]]:
        """Subjects that came into each building, by the start of each window that somebody was seen in.

        Before noise.
        Each counts once in a building, and in those it came to most often, the first by name among equals.
        """
        came: dict[tuple[datetime, str], Counter[str]] = defaultdict(Counter)
        for at, (_, building), subject in self.moves():
            came[floor_time(at, size), subject][building] += 1
        found: dict[datetime, Counter[str]] = {
            floor_time(row["at"], size): Counter() for row in self.shared("flow")
        }
        for (start, _), times in came.items():
            for building in sorted(times, key=lambda name: (-times[name], name))[:buildings_each]:
                found[start][building] += 1
        return {start: dict(each) for start, each in found.items()}

    def occupancy(self, size: timedelta) -> dict[datetime, dict[str, int]]:
        """Different subjects in each building, by the window's start."""
        seen: dict[datetime, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for row in self.shared("occupancy"):
            seen[floor_time(row["at"], size)][self.places[row["ap"]]].add(row["subject"])
        return {start: {name: len(who) for name, who in each.items()} for start, each in seen.items()}

    def shared(self, name: str) -> list[Row]:
        """The rows that a product may use, in order."""
        rights = _rights(self.policies, PRODUCTS[name])
        ordered = sorted(self.rows, key=lambda row: row["at"])
        return [row for row in ordered if any(_holds(each, row["at"]) for each in rights[row["subject"]])]


def _rights(policies: Iterable[Policy], product: Product) -> Mapping[str, list[Policy]]:
    found: dict[str, list[Policy]] = defaultdict(list)
    for policy in policies:
        if policy.consumer == product.consumer and product.purpose in policy.purposes:
            found[policy.subject].append(policy)
    return found


def _holds(policy: Policy, at: datetime) -> bool:
    """Whether the policy holds at that time of day, in UTC; its interval may go over midnight."""
    now = at.astimezone(UTC).time()
    begin, end = _time(policy.from_time) or time.min, _time(policy.to_time)
    if end is None or end == time.min:
        return now >= begin
    return begin <= now < end if begin < end else now >= begin or now < end


def _time(given: str | time | None) -> time | None:
    return time.fromisoformat(given) if isinstance(given, str) else given


def floor_time(at: datetime, step: timedelta) -> datetime:
    """The beginning of the step of time that the moment lies in, counted from the epoch.

    >>> floor_time(datetime(2020, 1, 6, 9, 14, 59, tzinfo=UTC), timedelta(minutes=15)).minute
    0
    """
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (at - epoch) // step * step


def pseudonym(key: bytes, product: str, subject: str) -> str:
    """What a subject is called in a product under a key of the ring, without periods."""

    def mac(secret: bytes, text: bytes) -> bytes:
        return hmac.digest(secret, text, hashlib.sha256)

    own, purpose = mac(key, b"penstock pseudonyms 1"), product.encode()
    return mac(
        own, struct.pack(f">i{len(purpose)}sq", len(purpose), purpose, -(2**63)) + subject.encode()
    ).hex()


def noise_bound(scale: float, values: int) -> float:
    """What Laplace noise of this scale exceeds, in any of so many values, once in a billion checks.

    >>> round(noise_bound(10.0, 1), 1)
    207.2
    """
    return scale * math.log(max(values, 1) / CERTAINTY)


def _only(row: Row, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}
