from __future__ import annotations

import threading

import pytest

from penstock.bench.connect.feed import Feed


def test_lots_follow_each_other_until_the_feed_is_ended() -> None:
    firsts: list[int] = []
    thrice = threading.Event()

    def send(first: int) -> int:
        firsts.append(first)
        if len(firsts) == 3:
            thrice.set()
        return first + 5

    feed = Feed(send, first=10)
    assert thrice.wait(10)
    last = feed.end()
    assert firsts[:3] == [10, 15, 20]
    assert last == firsts[-1] + 5


def test_what_kept_it_from_sending_is_told_at_the_end() -> None:
    def send(first: int) -> int:
        raise OSError("no way through")

    with pytest.raises(OSError, match=r"^no way through$"):
        Feed(send).end()
