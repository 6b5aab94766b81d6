"""Stages that have no rows yet and could start, so that their first rows need not wait for that."""

from __future__ import annotations

from penstock.scheduling.stage_view import StageView


class StartingStages:
    """They stand in no line: no policy knows them, and nobody's patience ends for them. One at a time."""

    def __init__(self) -> None:
        self._waiting: dict[str, StageView] = {}
        self._running = ""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, view: StageView) -> None:
        """It could start, behind those that could before."""
        self._waiting.setdefault(view.name, view)

    def take(self, name: str) -> None:
        """It has rows, or is gone; nothing happens if it is not known."""
        self._waiting.pop(name, None)

    def next(self, slots: int) -> StageView | None:
        """The first for which so many free slots are enough; None while one starts."""
        if self._running:
            return None
        return next((view for view in self._waiting.values() if view.slots <= slots), None)

    def granted(self, view: StageView) -> None:
        """It has its turn: one by which it starts, or another."""
        self.take(view.name)
        if view.starts:
            self._running = view.name

    def ended(self, name: str) -> None:
        """Its turn has."""
        if name == self._running:
            self._running = ""
