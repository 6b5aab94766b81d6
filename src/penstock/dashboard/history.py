"""The last minutes of an engine in rings, and the short form in which they are sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from penstock.dashboard.collector import News
from penstock.dashboard.snapshot import LatencyPoint, UsePoint, short
from penstock.measure.changes import Change
from penstock.measure.turns import TurnRecord

KEPT_POINTS = 6_000
KEPT_USES = 600
KEPT_TURNS = 2_000
KEPT_CHANGES = 200


class History:
    """What looks have brought, oldest first; what is older falls out."""

    def __init__(self) -> None:
        self._points: deque[LatencyPoint] = deque(maxlen=KEPT_POINTS)
        self._uses: deque[UsePoint] = deque(maxlen=KEPT_USES)
        self._turns: deque[TurnRecord] = deque(maxlen=KEPT_TURNS)
        self._changes: deque[Change] = deque(maxlen=KEPT_CHANGES)

    def add(self, news: News) -> None:
        self._points.extend(news.points)
        self._turns.extend(news.turns)
        self._changes.extend(news.changes)
        self._uses.append(news.use)

    def to_json(self) -> dict[str, list[Any]]:
        """All that is kept, as `news_json` writes it."""
        return _short(self._points, self._uses, self._turns, self._changes)


def news_json(news: News) -> dict[str, list[Any]]:
    """What happened since the look before, as lists: their fields are the arguments below, in that order.

    points: at, sink, p50, p99, results. uses: at, slots, slots busy by tenant, nodes.
    turns: stage, granted at, seconds, slots, rows. changes: at, kind, subject, became, reason.
    """
    return _short(news.points, [news.use], news.turns, news.changes)


def _short(
    points: Iterable[LatencyPoint],
    uses: Iterable[UsePoint],
    turns: Iterable[TurnRecord],
    changes: Iterable[Change],
) -> dict[str, list[Any]]:
    return {
        "points": [[round(p.at, 1), p.sink, short(p.p50), short(p.p99), short(p.results)] for p in points],
        "uses": [
            [round(u.at, 1), u.slots, {name: short(b) for name, b in u.busy.items()}, u.nodes] for u in uses
        ],
        "turns": [
            [t.stage, round(t.granted_at, 3), round(t.turn_seconds, 3), t.slots, t.rows_in] for t in turns
        ],
        "changes": [[round(c.at, 2), c.kind, c.subject, c.became, c.reason] for c in changes],
    }
