"""`penstock dead-letters`: the bad and late rows that a pipeline has put aside, with their reasons."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from penstock.cli.state_directory import DEFAULT, StateDirectory

REASONS_SHOWN = 5


@dataclass(frozen=True)
class DeadLetter:
    """A row that was put aside: when, by which queue, why, and as it came."""

    at: datetime
    queue: str
    reason: str
    raw: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pipeline", metavar="PIPELINE", help="whose")
    parser.add_argument(
        "--state", type=Path, default=DEFAULT, metavar="DIR", help="the engine's (default: ./%(default)s)"
    )
    parser.add_argument("-n", type=int, default=20, metavar="N", help="show the last N (default: 20)")
    parser.add_argument("--json", action="store_true", help="all of them, a JSON object a line")
    parser.add_argument("--clear", action="store_true", help="then remove all that were put aside so far")


def run(args: argparse.Namespace) -> int:
    state = StateDirectory(args.state)
    folder = state.folder(args.pipeline)
    looked_at = time.time()
    letters = dead_letters(folder)
    if args.clear:
        # What comes while this looks is neither shown nor removed.
        letters = (each for each in letters if each.at.timestamp() <= looked_at)
    if args.json:
        for each in letters:
            told = {"at": each.at.isoformat(), "queue": each.queue, "dead_letter": each.reason}
            print(json.dumps({**told, "raw": each.raw}, ensure_ascii=False))
    elif not _show_last(letters, args.n):
        print(f"pipeline {args.pipeline!r} has put no row aside")
        return 0
    if args.clear:
        # Nothing is removed that could not be written.
        sys.stdout.flush()
        _clear(state, folder, looked_at)
    return 0


def _show_last(letters: Iterator[DeadLetter], count: int) -> bool:
    """As a table, with the most frequent reasons; whether there are any."""
    reasons: Counter[str] = Counter()
    last: deque[DeadLetter] = deque(maxlen=max(count, 1))
    for each in letters:
        reasons[each.reason] += 1
        last.append(each)
    if reasons:
        _show(reasons, list(last))
    return bool(reasons)


def _clear(state: StateDirectory, folder: Path, put_aside_by: float) -> None:
    """An engine that runs owns the queues, and is asked; its answer is in the log of changes."""
    from penstock.queues.disk import Disk
    from penstock.queues.spool import Spool
    from penstock.spark.dead_letters import clear_request
    from penstock.stages.stage import DEAD

    process = state.engine_process
    if process is not None:
        Disk().replace(clear_request(folder), repr(put_aside_by).encode())
        told = f"the engine that runs (process {process}) removes them as soon as the pipeline runs"
        print(told, file=sys.stderr)
        return
    removed = 0
    for queue in sorted((folder / "queues").glob(f"*{DEAD}")):
        with Spool(queue) as spool:
            removed += spool.clear(put_aside_by)
    print(f"removed {removed:,}", file=sys.stderr)


def dead_letters(folder: Path) -> Iterator[DeadLetter]:
    """All that a pipeline has put aside, by queue, oldest first; read beside an engine that may run."""
    import pyarrow.parquet as pq

    from penstock.queues.recovery import published_in
    from penstock.spark.results import DEAD_LETTER, RAW
    from penstock.stages.stage import DEAD

    for queue in sorted((folder / "queues").glob(f"*{DEAD}")):
        for segment in published_in(queue):
            at = datetime.fromtimestamp(segment.published, UTC)
            for file in segment.files:
                # Cleared meanwhile, it is not there any more.
                with suppress(FileNotFoundError):
                    for row in pq.read_table(queue / file).to_pylist():
                        yield DeadLetter(at, queue.name.removesuffix(DEAD), row[DEAD_LETTER], row[RAW])


def _show(reasons: Counter[str], last: list[DeadLetter]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 110, emoji=False)
    total = reasons.total()
    title = f"the last {len(last):,} of {total:,} rows put aside"
    table = Table(title=title, title_justify="left")
    for column in ("when, UTC", "operator"):
        table.add_column(column, no_wrap=True)
    for column in ("why", "the row"):
        table.add_column(column, overflow="fold")
    for each in last:
        # Rows are the sender's: nothing in them is markup.
        table.add_row(f"{each.at:%m-%d %H:%M:%S}", *map(_plain, (each.queue, each.reason, each.raw)))
    console.print(table)
    for reason, rows in reasons.most_common(REASONS_SHOWN):
        console.print(f"{rows:>10,}  {reason}", highlight=False, markup=False)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text or "")
