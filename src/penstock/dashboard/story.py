"""The story of one stage: what held it back in the last minute, what its turns cost, and what was decided."""

from __future__ import annotations

from typing import Any

from penstock.dashboard.watched import Watched
from penstock.errors import PenstockError
from penstock.measure.held_back import what_held_back
from penstock.measure.minutes import StageMinute
from penstock.measure.profiles import StageProfile
from penstock.pipeline.latency import format_seconds
from penstock.scheduling.decisions import Grant

SHOWN = 12


def story(engine: Watched, stage: str, now: float) -> dict[str, Any]:
    """As JSON: sentences, and the last decisions, newest first."""
    reports = engine.stages()
    minutes = {
        each.stage: StageMinute(now - each.figures.seconds, each.stage, engine.pool_slots, each.figures)
        for each in reports
    }
    if stage not in minutes:
        raise PenstockError(f"no stage {stage!r} runs, of {sorted(minutes)}: there is nothing to tell")
    others = [each for name, each in minutes.items() if name != stage]
    return {
        "stage": stage,
        "held_back": f"{what_held_back(minutes[stage], others).sentence}.",
        "cost": _cost(engine.profile(stage)),
        "decisions": [
            {
                "at": round(each.at, 3),
                "granted": isinstance(each, Grant),
                "rows": each.rows if isinstance(each, Grant) else None,
                "reason": each.reason,
            }
            for each in reversed(engine.decisions(stage, SHOWN))
        ],
    }


def _cost(profile: StageProfile | None) -> str:
    if profile is None or not profile.trusted:
        return "What its turns cost is not known yet."
    return (
        f"A turn costs {_rounded(profile.fixed_seconds)} and {1e6 * profile.row_seconds:,.3g} µs for each "
        f"row; the largest of late had {profile.most_rows:,} rows. "
        f"It puts out {profile.selectivity:.3g} rows for each that it takes."
    )


def _rounded(seconds: float) -> str:
    return format_seconds(float(f"{seconds:.3g}"))
