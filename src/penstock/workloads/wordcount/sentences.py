"""Random sentences, each fixed by the seed and its number: so what was sent can be told again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError

SCHEMA = "number BIGINT, sentence STRING"
SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra", "so", "ti", "ve", "zu")


@dataclass(frozen=True)
class Sentences:
    """Words of a vocabulary, all as likely; `least` to `most` of them in a sentence.

    >>> Sentences(seed=1, least=2, most=4).table(0, 2)["sentence"].to_pylist()
    ['ratine zuloso zuralo zutizu', 'miveti tivera mimimi']
    """

    seed: int = 0
    words: int = 1_000
    least: int = 5
    most: int = 15

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most or self.words < 1:
            raise PenstockError(
                f"sentences must have 1 word or more of a vocabulary of 1 or more, got {self.least} to "
                f"{self.most} of {self.words}: there would be nothing to count"
            )

    def table(self, first: int, count: int) -> pa.Table:
        """The sentences from number `first` on, as rows of `SCHEMA`."""
        numbers = np.arange(first, first + count, dtype=np.uint64)
        sentences = [" ".join(words) for words in self._drawn(numbers)]
        return pa.table(
            {"number": pa.array(numbers.astype(np.int64)), "sentence": pa.array(sentences, pa.string())}
        )

    def counts(self, sentences: int) -> Counter[str]:
        """How often each word is in the first `sentences` sentences."""
        found: Counter[str] = Counter()
        for words in self._drawn(np.arange(sentences, dtype=np.uint64)):
            found.update(words)
        return found

    def _drawn(self, numbers: np.ndarray) -> Iterator[list[str]]:
        """The words of each sentence: by a hash of seed, number and place, so that no state is carried on."""
        places = np.arange(self.most + 1, dtype=np.uint64)
        keys = (np.uint64(self.seed) << np.uint64(40)) ^ numbers
        drawn = _mixed(_mixed(keys)[:, None] + places[None, :])
        lengths = self.least + drawn[:, 0] % np.uint64(self.most - self.least + 1)
        vocabulary = _vocabulary(self.words)
        chosen = (drawn[:, 1:] % np.uint64(self.words)).tolist()
        for indices, length in zip(chosen, lengths.tolist(), strict=True):
            yield [vocabulary[index] for index in indices[: int(length)]]


def _mixed(values: np.ndarray) -> np.ndarray:
    """SplitMix64: every bit of the input changes half of the output's."""
    with np.errstate(over="ignore"):
        z = values * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


@cache
def _vocabulary(words: int) -> tuple[str, ...]:
    return tuple(word(number) for number in range(words))


def word(number: int) -> str:
    """A word that can be said, another for each number."""
    text = ""
    while True:
        number, digit = divmod(number, len(SYLLABLES))
        text = SYLLABLES[digit] + text
        if not number:
            return text
