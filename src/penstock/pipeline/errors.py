"""What a mistaken declaration raises."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import PenstockError


class PipelineError(PenstockError):
    """A pipeline that cannot run as declared; `mistakes` holds each one found."""

    def __init__(self, pipeline: str, mistakes: Sequence[str]) -> None:
        self.pipeline = pipeline
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            super().__init__(f"pipeline {pipeline!r}: {self.mistakes[0]}")
        else:
            listed = "".join(f"\n  - {mistake}" for mistake in self.mistakes)
            super().__init__(f"pipeline {pipeline!r} has {len(self.mistakes)} mistakes:{listed}")

    def __reduce__(self) -> tuple[type[PipelineError], tuple[str, tuple[str, ...]]]:
        return type(self), (self.pipeline, self.mistakes)
