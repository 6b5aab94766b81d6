"""The same patterns in plain Python: from all texts of a window at once, and from what a reporter told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from typing import Any


def maximal_patterns(texts: Iterable[Collection[str]], frequent_at: int) -> set[str]:
    """The maximal frequent patterns of these texts, each as its sorted words with blanks between.

    >>> sorted(maximal_patterns([("a", "b"), ("b", "a", "c"), ("c",)], 2))
    ['a b', 'c']
    """
    counts: Counter[frozenset[str]] = Counter()
    for text in texts:
        words = set(text)
        for size in range(1, len(words) + 1):
            counts.update(map(frozenset, combinations(words, size)))
    frequent = {pattern for pattern, count in counts.items() if count >= frequent_at}
    maximal = (one for one in frequent if not any(one < other for other in frequent))
    return {" ".join(sorted(pattern)) for pattern in maximal}


def told_patterns(reports: Iterable[Mapping[str, Any]]) -> set[str]:
    """What is maximal after these rows of the reporter, in whatever order they came."""
    changes: Counter[str] = Counter()
    for row in reports:
        changes[row["pattern"]] += row["maximal"]
    if odd := {pattern: count for pattern, count in changes.items() if count not in (0, 1)}:
        raise ValueError(f"a pattern must become maximal and cease to be so by turns, got {odd}")
    return {pattern for pattern, count in changes.items() if count}
