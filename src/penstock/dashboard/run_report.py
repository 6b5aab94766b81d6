"""The report of a run: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from penstock.dashboard import run_plots
from penstock.dashboard.run_balance import balances, whole
from penstock.dashboard.run_record import RunRecord
from penstock.dashboard.terminal import rows, seconds, share
from penstock.measure.held_back import what_held_back
from penstock.measure.minutes import StageMinute
from penstock.pipeline.latency import format_seconds

STYLES = (Path(__file__).parents[1] / "demo" / "page.css", Path(__file__).with_name("report.css"))
HOW_MEASURED = (
    "Times are UTC. Latency: from the arrival of a row at its source to the moment its result is at the "
    "sink. T_Q, T_S, T_C: the time of a row in the queue behind a turn that ran without it, waiting for a "
    "slot, and in its turn."
)
MOST_CHANGES = 200


def page(record: RunRecord, written_at: str) -> str:
    """The whole page."""
    run = record.last_run()
    style = "".join(file.read_text() for file in STYLES)
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Penstock: {html.escape(run.name)}</title><style>{style}</style></head><body>",
            f"<h1>Run of {html.escape(run.name)}</h1>",
            f'<p class="lead">{html.escape(run.verdict())}</p>',
            *_failures(run),
            _cards(run),
            *_latency(run),
            *_turns(run),
            *_use(run),
            *_balance(run),
            *_held_back(run),
            *_changes(run),
            f'<p class="note">Written {html.escape(written_at)}. {HOW_MEASURED}</p>',
            "</body></html>\n",
        ]
    )


def _failures(run: RunRecord) -> list[str]:
    return [
        f'<p class="failed"><b>Pipeline {html.escape(name)} has stopped:</b> {html.escape(reason)}</p>'
        for name, reason in run.failures.items()
    ]


def _cards(run: RunRecord) -> str:
    minutes, sinks = run.minutes, run.sinks()
    aimed = [sink for sink in sinks if sink.target_seconds is not None]
    taken = sum(each.figures.rows_in for each in minutes)
    cards = [
        (f"{_clock(run.begin)} to {_clock(run.end)}", "UTC"),
        (f"{sum(sink.kept for sink in aimed)} of {len(aimed)}", "targets kept"),
        (rows(sum(each.figures.turns for each in minutes)), "turns"),
        (rows(taken), "rows taken by stages"),
        (rows(sum(sink.results for sink in sinks)), "rows at sinks"),
    ]
    inner = "".join(
        f'<div class="card"><b>{html.escape(value)}</b><span>{html.escape(text)}</span></div>'
        for value, text in cards
    )
    return f'<div class="cards">{inner}</div>'


def _latency(run: RunRecord) -> list[str]:
    if not run.spans:
        return ["<h2>Latency</h2>", '<p class="note">No result has come to a sink.</p>']
    lines = [
        (
            sink.name,
            sink.tenant,
            "none" if sink.target_seconds is None else format_seconds(sink.target_seconds),
            rows(sink.results),
            ("" if sink.target_seconds is None else share(sink.in_time), "ok" if sink.kept else "bad"),
            seconds(sink.p50),
            seconds(sink.p99),
        )
        for sink in run.sinks()
    ]
    head = ("sink", "tenant", "target", "results", "in time", "p50 (median of 10 s)", "p99 (worst 10 s)")
    return [
        "<h2>Latency at sinks</h2>",
        _picture(run_plots.latency(run), "Latency of each sink over time"),
        _table(head, lines),
    ]


def _turns(run: RunRecord) -> list[str]:
    if not run.turns:
        return []
    return [
        "<h2>Who ran when</h2>",
        _picture(run_plots.turns(run), "Turns on each slot in the last half minute"),
    ]


def _use(run: RunRecord) -> list[str]:
    if not run.minutes:
        return []
    lines = [_stage_line(name, [each for each in run.minutes if each.stage == name]) for name in run.stages]
    head = (
        "stage",
        "turns",
        "rows in",
        "rows out",
        "out:in",
        "come/s",
        "take/s",
        "busy",
        "mean slots",
        "T_Q",
        "T_S",
        "T_C",
        "waiting at the end",
    )
    return [
        "<h2>Stages</h2>",
        _picture(run_plots.use(run), "Slots in use and rows waiting by stage"),
        _table(head, lines),
    ]


def _stage_line(name: str, minutes: Sequence[StageMinute]) -> tuple[str, ...]:
    figures = [each.figures for each in minutes]
    run = whole(figures)
    taken = run.rows_in

    def by_row(field: str) -> str:
        return seconds(sum(getattr(each, field) * each.rows_in for each in figures) / taken) if taken else ""

    return (
        name,
        rows(run.turns),
        rows(taken),
        rows(run.rows_out),
        f"{run.selectivity:.2f}" if taken else "",
        rows(run.arrival_rows_per_second),
        rows(run.service_rows_per_second) if taken else "",
        f"{run.utilisation:.0%}" if run.seconds else "",
        f"{run.slot_seconds / run.seconds:.2f}" if run.seconds else "",
        by_row("queue_seconds"),
        by_row("schedule_seconds"),
        by_row("compute_seconds"),
        rows(figures[-1].rows_waiting),
    )


def _balance(run: RunRecord) -> list[str]:
    """What EdgeWise wants even, by stage and by pipeline."""
    loads = balances(run)
    stages = [
        (
            each.stage,
            f"{each.weight:.2f}",
            f"{each.relative_input:.2f}",
            f"{each.relative_service:.2f}",
            f"{each.balance:.2f}",
        )
        for load in loads.values()
        for each in load.stages
    ]
    if not stages:
        return []
    pipelines = [
        (
            name,
            rows(load.input_rows_per_second or 0.0),
            rows(load.highest_rows_per_second or 0.0),
            "" if load.utilisation_cv is None else f"{load.utilisation_cv:.2f}",
            "" if load.weight_cv is None else f"{load.weight_cv:.2f}",
        )
        for name, load in loads.items()
        if load.stages
    ]
    told = "w: slots occupied; q: rows that came, r: rows a slot serves, relative to the first stages."
    head = ("pipeline", "come/s", "highest predicted/s", "CV of busy", "CV of w*r/q")
    return [
        "<h2>Balance</h2>",
        f'<p class="note">{told} Where w*r/q is even, slots go where the rows are.</p>',
        _table(head, pipelines),
        _table(("stage", "w", "q", "r", "w*r/q"), stages),
    ]


def _held_back(run: RunRecord) -> list[str]:
    """For each stage the minute in which a row stayed longest, and why."""
    found = []
    for name in run.stages:
        own = [each for each in run.minutes if each.stage == name and each.figures.rows_in]
        if not own:
            continue
        worst = max(own, key=_stay)
        others = [each for each in run.minutes if each.begin == worst.begin and each.stage != name]
        found.append((name, worst.clock, f"{what_held_back(worst, others).sentence}."))
    if not found:
        return []
    return [
        "<h2>What held stages back, in their worst minute</h2>",
        _table(("stage", "minute", "why"), found, "texts"),
    ]


def _stay(minute: StageMinute) -> float:
    figures = minute.figures
    return figures.queue_seconds + figures.schedule_seconds + figures.compute_seconds


def _changes(run: RunRecord) -> list[str]:
    if not run.changes:
        return []
    lines = [
        (_clock(each.at), each.kind, each.subject, each.became, each.reason)
        for each in run.changes[-MOST_CHANGES:]
    ]
    return ["<h2>Changes and why</h2>", _table(("time", "of", "subject", "became", "reason"), lines, "texts")]


def _picture(png: bytes, text: str) -> str:
    return f'<img alt="{text}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


Cell = str | tuple[str, str]


def _table(columns: Iterable[str], lines: Iterable[Sequence[Cell]], kind: str = "") -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(_cell(cell, kind) for cell in line) + "</tr>" for line in lines)
    table = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="wide">{table}</div>'


def _cell(cell: Cell, kind: str) -> str:
    text, style = cell if isinstance(cell, tuple) else (cell, "text" if kind and len(cell) > 30 else "")
    return f'<td class="{style}">{html.escape(text)}</td>' if style else f"<td>{html.escape(text)}</td>"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
