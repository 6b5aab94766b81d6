"""The report of a demo: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.demo import summary, words
from penstock.workloads.share_run import ShareRun

STYLE = Path(__file__).with_name("page.css")


@dataclass(frozen=True)
class Report:
    """What a page tells: the runs (the one to look at last), its picture, the machine, and the command."""

    runs: Sequence[ShareRun]
    seconds: float
    picture: bytes
    machine: Mapping[str, object]
    command: str
    written_at: str

    def html(self) -> str:
        """The whole page."""
        before, after = self.runs[0], self.runs[-1]
        return "\n".join(
            [
                '<!doctype html><html lang="en"><head><meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>Penstock demo</title><style>{STYLE.read_text()}</style></head><body>",
                "<h1>Penstock demo</h1>",
                f'<p class="lead">{html.escape(summary.verdict(before, after))}</p>',
                _cards(before, after),
                _picture(self.picture),
                "<h2>Both sides</h2>",
                _table(summary.COLUMNS, [line.cells for line in summary.lines(self.runs)], after.side.label),
                f'<p class="note">{HOW_MEASURED}</p>',
                "<h2>Each pipeline</h2>",
                _table(PIPELINE_COLUMNS, _pipeline_rows(self.runs), after.side.label),
                "<h2>What was run</h2>",
                _facts(self._what()),
                "<h2>The machine</h2>",
                _facts({name.replace("_", " "): _fact(value) for name, value in self.machine.items()}),
                "<h2>Again</h2>",
                f"<p><code>{html.escape(self.command)}</code> repeats this; "
                "<code>penstock bench share</code> measures longer, against tuned and FAIR Spark too.</p>",
                "</body></html>\n",
            ]
        )

    def _what(self) -> dict[str, str]:
        loads = {load.group: load for load in self.runs[0].loads}
        told = {
            f"4 {group}": f"count over {load.window_seconds} s windows of Spark's rate source, "
            f"{load.rows_per_second:,} rows/s each, result wanted within {words.target(load.target_seconds)}"
            for group, load in loads.items()
        }
        told |= {run.side.label: run.side.what for run in self.runs}
        warmup = self.runs[0].warmup_seconds
        return told | {
            "time": f"{warmup:.0f} s of warm-up, {self.seconds:.0f} s measured, one side after the other",
            "written": self.written_at,
        }


PICTURE_TEXT = "Latency of urgent results over time, their distribution, and shares in time"
HOW_MEASURED = (
    "Latency: from the moment at which the row that completes a window can be read to the moment its result "
    "is at the sink. A result that was missing at the end counts with the time until then. In time: of the "
    "results that came or are overdue. Rows done: read by batches whose result was delivered, warm-up "
    "included. Backlog: rows that could have been read by the end and were not done."
)
PIPELINE_COLUMNS = ("pipeline", *summary.COLUMNS[1:])


def _picture(picture: bytes) -> str:
    encoded = base64.b64encode(picture).decode()
    return f'<img alt="{PICTURE_TEXT}" src="data:image/png;base64,{encoded}">'


def _cards(before: ShareRun, after: ShareRun) -> str:
    slow, fast = before.group("urgent"), after.group("urgent")
    cards = (
        (f"{words.seconds(slow.p50)} → {words.seconds(fast.p50)}", "median latency of urgent results"),
        (f"{words.seconds(slow.p99)} → {words.seconds(fast.p99)}", "99th percentile"),
        (f"{words.share(slow.share_in_time)} → {words.share(fast.share_in_time)}", "urgent results in time"),
        (
            f"{words.rows(before.group('bulky').rows_done)} → {words.rows(after.group('bulky').rows_done)}",
            "rows of the bulky pipelines",
        ),
    )
    inner = "".join(f'<div class="card"><b>{value}</b><span>{text}</span></div>' for value, text in cards)
    return f'<div class="cards">{inner}</div>'


def _pipeline_rows(runs: Sequence[ShareRun]) -> list[tuple[str, ...]]:
    sides = [(run, run.scores()) for run in runs]
    return [
        summary.Line(load.name, run.side.label, scores[place]).cells
        for place, load in enumerate(runs[0].loads)
        for run, scores in sides
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], ours: str) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        ('<tr class="ours">' if ours in row else "<tr>")
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _facts(told: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(key)}</th><td>{html.escape(text)}</td></tr>" for key, text in told.items()
    )
    return f'<table class="facts">{rows}</table>'


def _fact(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_fact(each) for each in value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)
