"""Tweets: words by Zipf's law, arrivals by Poisson's, and the window that they come into and leave."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError

SCHEMA = "tweet BIGINT, sign INT, words ARRAY<STRING>"
ARROW = pa.schema([("tweet", pa.int64()), ("sign", pa.int32()), ("words", pa.list_(pa.string()))])
WINDOW = 50_000
TWEETS_PER_SECOND = 320.0


@dataclass(frozen=True)
class Tweet:
    """A text as its different words."""

    number: int
    due_seconds: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class Tweets:
    """Texts of 1 to `most_words` words; the n-th of the vocabulary is used as 1/n^exponent."""

    seed: int = 1
    vocabulary: int = 20_000
    most_words: int = 5
    exponent: float = 1.0

    def arrivals(self, seconds: float, tweets_per_second: float = TWEETS_PER_SECOND) -> Iterator[Tweet]:
        """What comes in so many seconds, one after the other."""
        chance = np.random.default_rng(self.seed)
        weights = 1.0 / np.arange(1, self.vocabulary + 1) ** self.exponent
        edges = np.cumsum(weights) / weights.sum()
        due, number = float(chance.exponential(1.0 / tweets_per_second)), 0
        while due < seconds:
            drawn = np.searchsorted(edges, chance.random(int(chance.integers(1, self.most_words + 1))))
            yield Tweet(number, due, tuple(f"w{each}" for each in dict.fromkeys(drawn.tolist())))
            due, number = due + float(chance.exponential(1.0 / tweets_per_second)), number + 1


@dataclass
class Window:
    """The last `size` tweets. `slide` gives what a new one brings: rows that enter, and rows that leave."""

    size: int = WINDOW
    tweets: deque[Tweet] = field(default_factory=deque)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise PenstockError(f"a window must hold 1 tweet or more, got {self.size}: it would be empty")

    def slide(self, arrived: Iterable[Tweet]) -> tuple[pa.Table, pa.Table]:
        """(those that enter, those that leave), as rows of SCHEMA."""
        entering, leaving = list(arrived), []
        for tweet in entering:
            self.tweets.append(tweet)
            if len(self.tweets) > self.size:
                leaving.append(self.tweets.popleft())
        return _rows(entering, 1), _rows(leaving, -1)


def _rows(tweets: Sequence[Tweet], sign: int) -> pa.Table:
    rows = [{"tweet": each.number, "sign": sign, "words": list(each.words)} for each in tweets]
    return pa.Table.from_pylist(rows, schema=ARROW)
