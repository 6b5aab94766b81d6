"""What was published, against what was sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Messages as they come. A word that was sent n times must be told with 1 to n, each of them once.

    >>> tally = Tally()
    >>> tally.add(['{"word": "a", "count": 1}', '{"word": "a", "count": 3}', '{"word": "a", "count": 3}'])
    >>> tally.lost({"a": 3}), tally.doubled, tally.unsent({"a": 3})
    (1, 1, 0)
    """

    told: Counter[tuple[str, int]] = field(default_factory=Counter)

    def add(self, messages: Iterable[str]) -> None:
        for message in messages:
            said = json.loads(message)
            self.told[said["word"], said["count"]] += 1

    def lost(self, sent: Mapping[str, int]) -> int:
        """Counts that no message told."""
        return sum((word, n) not in self.told for word, times in sent.items() for n in range(1, times + 1))

    @property
    def doubled(self) -> int:
        """Messages that told again what one had told."""
        return sum(times - 1 for times in self.told.values())

    def unsent(self, sent: Mapping[str, int]) -> int:
        """Counts that were told of words that were not sent, or not so often."""
        return sum(not 1 <= n <= sent.get(word, 0) for word, n in self.told)
