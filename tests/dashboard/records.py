"""The record of a run for tests: two stages, two sinks, three minutes; one of the sinks late in the last."""

from __future__ import annotations

import json
from pathlib import Path

from tests.dashboard.fakes import BEGIN

from penstock.measure.changes import Change
from penstock.measure.minutes import SinkSpan, StageMinute, minute_of
from penstock.measure.stage_meter import StageMeter
from penstock.measure.turns import KeptTurn, TurnRecord

START = minute_of(BEGIN)


def stage_minute(stage: str, minute: int, waited: float = 0.02) -> StageMinute:
    begin = START + 60 * minute
    meter = StageMeter(begin)
    for second in range(60):
        at = begin + second
        meter.queue_changed(1000, at, arrived=1000)
        meter.turn_started(at + waited)
        times = (0.01, waited, 0.4)
        meter.turn_finished(TurnRecord(stage, "heat", second, "direct", 1, at, at + 0.4, 1000, 500, *times))
        meter.queue_changed(0, at + 0.4)
    return StageMinute(begin, stage, 2, meter.figures(begin + 60), stage.split(".")[0], first=True)


def _span(at: int, pipeline: str, sink: str, target: float, in_time: bool) -> SinkSpan:
    begin, p99 = START + at, 0.4 if in_time else 2.5
    return SinkSpan(
        begin, begin + 10, pipeline, sink, "plant", target, 100, 1.0 if in_time else 0.2, 0.1, p99
    )


def _turn(at: int) -> KeptTurn:
    return KeptTurn(("heat.warm", "usage.sum")[at % 2], START + 150 + 0.5 * at, 0.4, 1 + (at % 5 == 0), 1000)


def write_record(folder: Path) -> None:
    """Keeps it as an engine does."""
    times = range(0, 180, 10)
    late = [_span(at, "heat", "alarms", 0.8, at < 120) for at in times]
    fine = [_span(at, "usage", "ledger", 60.0, True) for at in times]
    stages = ("heat.warm", "usage.sum")
    lines = {
        "minutes": [stage_minute(name, at, 0.02 if at < 2 else 1.5) for at in range(3) for name in stages],
        "sinks": [*late, *fine],
        "turns": [_turn(at) for at in range(60)],
        "changes": [Change(START + 125, "slots", "the pool", "3", "utilisation 0.91 over 0.70 <b>")],
    }
    for name, each in lines.items():
        values = [value.to_json() for value in each]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))
