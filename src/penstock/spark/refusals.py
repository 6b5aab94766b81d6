"""Why a pipeline is not started: state that does not fit it, or that it could not trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError


class AnotherVersion(PenstockError):
    """State on disk that belongs to a pipeline of the same name and another shape."""

    def __init__(self, pipeline: str, folder: Path, changes: list[str]):
        self.pipeline = pipeline
        self.folder = folder
        self.changes = changes
        listed = "; ".join(changes)
        super().__init__(
            f"pipeline {pipeline!r} must be the one whose state lies in {folder}, but: {listed}. "
            "It is not started: run the old version until its queues are empty, "
            "or give the pipeline another name or state directory"
        )


class PipelineFailed(PenstockError):
    """A pipeline that stopped at an error and was not told to go on."""

    def __init__(self, pipeline: str, reason: str):
        self.pipeline = pipeline
        super().__init__(
            f"pipeline {pipeline!r} stopped earlier: {reason}. Its queues are kept; mend the cause, then run "
            f"`penstock resume` with its state directory, or submit it with resume=True"
        )


def read_json(path: Path) -> Any:
    """What a file of the state says; a file that does not is refused."""
    text = path.read_text()
    try:
        return json.loads(text)
    except ValueError as error:
        raise PenstockError(
            f"{path} must be JSON as Penstock wrote it, got {text[:60]!r}: the pipeline is not started; "
            "restore the file, or remove the pipeline's state to begin anew"
        ) from error
