"""The state of an engine as tables for a terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.measure.promises import ENOUGH_IN_TIME

Item = Mapping[str, Any]
STYLES = {"ok": "green", "warn": "yellow", "bad": "bold red", "none": "dim"}
BARS = "▁▂▃▄▅▆▇█"
KEPT = 24
NARROW = 115
"""Columns of a terminal under which the times of a row are shown as one."""


class Screen:
    """Draws one state after the other; remembers latencies, so that it can show how they went."""

    def __init__(self) -> None:
        self._p99: dict[str, deque[float]] = {}

    def draw(self, told: Mapping[str, Any], width: int = NARROW) -> RenderableType:
        """All of it, what needs looking at first."""
        state = told["state"]
        for name, sink in state["sinks"].items():
            kept = self._p99.setdefault(name, deque(maxlen=KEPT))
            kept.append(sink["p99"] if sink["results_minute"] else 0.0)
        return Group(
            _heading(told["at"], state),
            *_alerts(told["at"], state["alerts"].values()),
            self._sinks(state["sinks"].values(), narrow=width < NARROW),
            _stages(state["stages"].values(), state["alerts"], narrow=width < NARROW),
            _tenants(state["tenants"].values(), state["engine"]["slots"]),
        )

    def _sinks(self, sinks: Iterable[Item], narrow: bool) -> Table:
        went = () if narrow else (f"p99 of {KEPT} looks",)
        table = _table("sink", "target", "p50", "p99", "in time", "results/min", *went)
        for sink in sorted(sinks, key=lambda each: each["in_time"]):
            status = _sink_status(sink)
            known = bool(sink["results_minute"])
            table.add_row(
                sink["name"],
                seconds(sink["target_seconds"]) or "none",
                seconds(sink["p50"]) if known else "",
                Text(seconds(sink["p99"]) if known else "", STYLES[status]),
                Text(share(sink["in_time"]) if status != "none" else "", STYLES[status]),
                rows(sink["results_minute"]),
                *(Text(sparkline(self._p99[sink["name"]]), "blue") for _ in went),
            )
        return table


def _heading(at: float, state: Mapping[str, Any]) -> Text:
    stages, pipelines = state["stages"].values(), state["pipelines"].values()
    busy = sum(each["slots_busy"] for each in stages)
    waiting = sum(each["rows_waiting"] for each in stages)
    nodes = state["engine"].get("nodes")
    where = "" if nodes is None else f" on {nodes} nodes"
    text = Text.assemble(
        ("Penstock ", "bold"),
        (datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC"), "dim"),
        f"  {busy:.1f} of {state['engine']['slots']} slots busy{where}, {rows(waiting)} rows waiting  ",
    )
    for each in pipelines:
        style = {"running": "green", "paused": "yellow", "failed": "bold red"}.get(each["state"], "dim")
        text.append(f" {each['name']} {each['state']} ", style)
        if each["weight_cv"] is not None:
            text.append(
                f"(CV of busy {each['utilisation_cv'] or 0:.2f}, of w*r/q {each['weight_cv']:.2f}) ", "dim"
            )
    return text


def _alerts(at: float, alerts: Iterable[Item]) -> list[Text]:
    found = sorted(alerts, key=lambda each: (each["severity"] != "critical", each["since"]))
    if not found:
        return [
            Text("✓ all is well: targets are met, stages move, brokers are there, disks have room", "green")
        ]
    return [
        Text(
            f"{'✕' if each['severity'] == 'critical' else '!'} {each['kind']} {each['subject']}: "
            f"{each['reason']} (for {at - each['since']:.0f} s)",
            STYLES["bad" if each["severity"] == "critical" else "warn"],
        )
        for each in found
    ]


def _stages(stages: Iterable[Item], alerts: Mapping[str, Any], narrow: bool) -> Table:
    rates = () if narrow else ("come/s", "taken/s", "w*r/q")
    times = ("row stays",) if narrow else ("T_Q", "T_S", "T_C")
    table = _table("stage", "waiting", *rates, "busy", *times, "target", "turns", "dead")
    for stage in stages:
        stuck = f"stuck {stage['name']}" in alerts
        style = STYLES["bad"] if stuck else STYLES[_stage_status(stage)]
        running = "● " if stage["turn_since"] is not None else "  "
        table.add_row(
            Text(running + stage["name"] + (" stuck" if stuck else ""), style if style != "dim" else ""),
            rows(stage["rows_waiting"]),
            *([] if narrow else [rows(stage[f"{kind}_rows_per_second"]) for kind in ("arrival", "service")]),
            *([] if narrow else ["" if stage["balance"] is None else f"{stage['balance']:.2f}"]),
            bar(stage["utilisation"], f"{stage['utilisation']:>4.0%}", width=4 if narrow else 8),
            *map(seconds, [sum(_times(stage))] if narrow else _times(stage)),
            seconds(stage["target_seconds"]) or "none",
            rows(stage["turns"]),
            rows(stage["dead_rows"] + stage["late_rows"]),
        )
    return table


def _times(stage: Item) -> list[float]:
    return [stage["queue_seconds"], stage["schedule_seconds"], stage["compute_seconds"]]


def _tenants(tenants: Iterable[Item], slots: int) -> Table:
    table = _table("tenant", "target", "in time", "results/min", "slots busy")
    for each in tenants:
        known = each["target_seconds"] is not None and each["results_minute"]
        style = STYLES[_status(each["in_time"])] if known else ""
        table.add_row(
            each["name"],
            seconds(each["target_seconds"]) or "none",
            Text(share(each["in_time"]) if known else "", style),
            rows(each["results_minute"]),
            bar(each["slots_busy"] / max(slots, 1), f"{each['slots_busy']:.2f}"),
        )
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), header_style="dim", expand=False)
    table.add_column(first, overflow="ellipsis", no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _sink_status(sink: Item) -> str:
    if sink["target_seconds"] is None or not sink["results_minute"]:
        return "none"
    return _status(sink["in_time"])


def _status(in_time: float) -> str:
    return "ok" if in_time >= ENOUGH_IN_TIME else "warn" if in_time >= 0.5 else "bad"


def _stage_status(stage: Item) -> str:
    """By how long a row stays there, against its target."""
    stay = sum(_times(stage))
    if stage["target_seconds"] is None or not stay:
        return "none"
    return (
        "ok" if stay <= stage["target_seconds"] / 2 else "warn" if stay <= stage["target_seconds"] else "bad"
    )


def rows(number: float) -> str:
    """A number in few letters.

    >>> rows(950), rows(1234), rows(56_789), rows(7_890_000)
    ('950', '1.2k', '57k', '7.9M')
    """
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.1f}{letter}" if number < 10 * unit else f"{number / unit:.0f}{letter}"
    return f"{number:.0f}"


def seconds(value: float | None) -> str:
    """A length of time in few letters; empty where there is none.

    >>> seconds(0.0123), seconds(1.5), seconds(75.0), seconds(None)
    ('12 ms', '1.5 s', '75 s', '')
    """
    if value is None:
        return ""
    if value < 1:
        return f"{1e3 * value:.0f} ms"
    return f"{value:.3g} s" if value < 600 else f"{value / 60:.0f} min"


def share(value: float) -> str:
    """Never 100% where something is missing.

    >>> share(1.0), share(0.9996), share(0.5)
    ('100%', '99.9%', '50.0%')
    """
    return "100%" if value >= 1 else f"{int(value * 1000) / 10:.1f}%"


def bar(part: float, text: str, width: int = 8) -> Text:
    """A part of a whole, and what it is in words.

    >>> bar(0.5, "half", width=4).plain
    '━━── half'
    """
    full = round(min(max(part, 0.0), 1.0) * width)
    return Text.assemble(("━" * full, "blue"), ("─" * (width - full), "bright_black"), f" {text}")


def sparkline(values: Iterable[float]) -> str:
    """How values went, against their greatest.

    >>> sparkline([0.0, 1.0, 2.0, 4.0])
    '▁▃▅█'
    """
    known = list(values)
    top = max(known, default=0.0)
    return "".join(BARS[int(value / top * (len(BARS) - 1) + 0.5)] if top else BARS[0] for value in known)
