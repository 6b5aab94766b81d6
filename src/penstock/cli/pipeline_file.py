"""The pipelines that a Python file declares."""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path

from penstock.errors import PenstockError
from penstock.pipeline.pipeline import Pipeline


class PipelineFileError(PenstockError):
    """A file that cannot be run, or declares no pipelines."""

    def __init__(self, path: Path, message: str):
        self.path = path
        super().__init__(f"{path} {message}")


def load_pipelines(path: Path) -> list[Pipeline]:
    """Those that `pipelines()` returns, else the Pipeline objects at module level; no name twice.

    The file runs as a module that is not `__main__`, and may import what lies beside it.
    """
    if not path.is_file():
        raise PipelineFileError(path, "must be a Python file that exists: there is nothing to run")
    found = _declared(path, _run(path))
    if not found:
        raise PipelineFileError(
            path,
            "must have a Pipeline at module level or a function `pipelines()` that returns some, got neither",
        )
    for pipeline in found:
        if [other.name for other in found].count(pipeline.name) > 1:
            raise PipelineFileError(
                path, f"must give each pipeline a name of its own, got {pipeline.name!r} twice: rename one"
            )
    return found


def _run(path: Path) -> dict[str, object]:
    sys.path.insert(0, str(path.absolute().parent))
    try:
        return runpy.run_path(str(path), run_name=path.stem)
    except PenstockError:
        raise
    except Exception as error:
        where = _last_line_in(path, error)
        raise PipelineFileError(
            path, f"must run without an error, got {type(error).__name__}: {error}{where}"
        ) from error


def _last_line_in(path: Path, error: Exception) -> str:
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    return f" (line {lines[-1]})" if lines else ""


def _declared(path: Path, names: dict[str, object]) -> list[Pipeline]:
    function = names.get("pipelines")
    if not callable(function):
        found = {id(value): value for value in names.values() if isinstance(value, Pipeline)}
        return list(found.values())
    try:
        returned = function()
        given = [returned] if isinstance(returned, Pipeline) else list(returned or ())
    except Exception as error:
        where = _last_line_in(path, error)
        raise PipelineFileError(
            path, f"must return pipelines from `pipelines()`, got {type(error).__name__}: {error}{where}"
        ) from error
    for each in given:
        if not isinstance(each, Pipeline):
            raise PipelineFileError(
                path, f"must return pipelines from `pipelines()`, got a {type(each).__name__} among them"
            )
    return given
