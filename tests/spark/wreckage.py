"""What `kill -9` leaves: copies of a directory taken at chosen moments, to be put back later.

The process that is "killed" goes on, in a world that the test then throws away. So one run gives many
crashes, each at a moment that is known exactly.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Wreckage:
    """Copies of `world`, each taken just before or just after a call of a method."""

    def __init__(self, world: Path, kept: Path):
        self._world = world
        self._kept = kept
        self._taking = True
        self.moments: list[str] = []

    def around(self, patch: pytest.MonkeyPatch, owner: type, method: str) -> None:
        """A copy before and a copy after every call of that method, until `stop`."""
        original: Callable[..., Any] = getattr(owner, method)

        def watched(*arguments: Any, **named: Any) -> Any:
            self._take(f"before {owner.__name__}.{method}")
            result = original(*arguments, **named)
            self._take(f"after {owner.__name__}.{method}")
            return result

        patch.setattr(owner, method, watched)

    def _take(self, moment: str) -> None:
        if not self._taking:
            return
        shutil.copytree(self._world, self._kept / str(len(self.moments)))
        self.moments.append(moment)

    def stop(self) -> None:
        self._taking = False

    def put_back(self, number: int) -> None:
        """The world as it was at that moment; whoever worked in it must have stopped."""
        shutil.rmtree(self._world)
        shutil.copytree(self._kept / str(number), self._world)
