"""The driver of a run, in a process of its own: one question, one run."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.bench.workers import ending_at_once, serve


def answer(folder: Path, request: Mapping[str, Any]) -> Any:
    """What `do` says: a run of WordCount, or a stage that always has rows."""
    return RUNS[request.get("do", "wordcount")](folder, request)


def _wordcount(folder: Path, request: Mapping[str, Any]) -> Any:
    from penstock.bench.elastic.wordcount_run import WordCountRun

    return WordCountRun(folder, request).figures()


def _saturated(folder: Path, request: Mapping[str, Any]) -> Any:
    from penstock.bench.elastic.saturated_run import SaturatedRun

    return SaturatedRun(folder, request).figures()


RUNS = {"wordcount": _wordcount, "saturated": _saturated}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger("pika").setLevel(logging.WARNING)
    with ending_at_once():
        serve(True, lambda request: answer(asked.folder, request))


if __name__ == "__main__":
    main()
