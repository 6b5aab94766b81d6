"""Why urgent results were late: what each waited for, from the message that completed its window on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from penstock.bench.tenants.meter import Turn
from penstock.bench.tenants.runs import JobRun, Run

SHOWN = 20
# The clock of a grant is read a little before that of the turn that ended for it.
NEAR_SECONDS = 0.01


@dataclass(frozen=True)
class Late:
    """One result over its target. The four parts add up to its latency, but for one that never came."""

    job: str
    at: float
    """The second of the run at which its window was complete."""
    latency: float
    missing: bool
    fed_seconds: float
    """How late the message that completed it was handed over."""
    waited_seconds: float
    """From there until its turn was granted, or until the end."""
    behind: str
    """Whose turn ended last before that; "" if none ran."""
    behind_seconds: float
    behind_predicted_seconds: float
    turn_seconds: float
    rest_seconds: float
    """After the turn, or less than 0 where the result left before its end."""


def late_results(run: Run) -> list[Late]:
    """The urgent results of a run that were over their target, the latest of all first."""
    found = [
        _late(run, each, sample)
        for each in run.urgent.jobs
        for sample in each.samples
        if each.turns and (sample[2] or sample[1] > each.job.target_seconds)
    ]
    return sorted(found, key=lambda late: -late.latency)


def _late(run: Run, own: JobRun, sample: tuple[float, float, bool]) -> Late:
    at, latency, missing = sample
    came = at + latency
    fed = max((when for due, _, when in own.fed if abs(due - at) < 1e-3), default=at)
    granted = [turn for turn in own.turns if fed - NEAR_SECONDS <= turn.granted_at <= came]
    turn = granted[-1] if granted and not missing else None
    until = came if turn is None else turn.granted_at
    blocker, name = _behind(run, own, fed, until)
    seconds = 0.0 if turn is None else turn.seconds
    return Late(
        job=own.job.name,
        at=at,
        latency=latency,
        missing=missing,
        fed_seconds=fed - at,
        waited_seconds=until - fed,
        behind=name,
        behind_seconds=blocker.seconds if blocker else 0.0,
        behind_predicted_seconds=blocker.predicted_seconds if blocker else 0.0,
        turn_seconds=seconds,
        rest_seconds=came - until - seconds,
    )


def _behind(run: Run, own: JobRun, since: float, until: float) -> tuple[Turn | None, str]:
    """The turn, of whichever job, that ended last while the result waited for a slot; and the job's name."""
    ended = [
        (turn.ends_at, each.job.name, turn)
        for each in run.jobs
        for turn in each.turns
        if since < turn.ends_at <= until + NEAR_SECONDS
        and not (each is own and turn.granted_at >= until - NEAR_SECONDS)
    ]
    if not ended:
        return None, ""
    _, name, turn = max(ended)
    return turn, name


def told(run: Run) -> dict[str, Any]:
    """A run's late results for the JSON file: how many, their parts on average, and the worst of them."""
    late = late_results(run)
    return {
        "side": run.side,
        "bulk_rows_per_second": run.load.bulk_rows_per_second,
        "policy": str(run.load.policy),
        "results": len(run.urgent.latencies),
        "late": len(late),
        "cuts": run.cuts[0],
        "cuts_overran_share": known(run.cuts_overran_share),
        "mean": _means(late),
        "worst": [
            {
                name: known(value) if isinstance(value, float) else value
                for name, value in asdict(each).items()
            }
            for each in late[:SHOWN]
        ],
    }


def _means(late: Sequence[Late]) -> dict[str, float]:
    parts = ("fed_seconds", "waited_seconds", "behind_seconds", "turn_seconds", "rest_seconds")
    return {part: round(fmean(getattr(each, part) for each in late), 3) for part in parts} if late else {}


def known(value: float) -> float | None:
    """Rounded; None for what is not a number, which JSON does not have."""
    return round(value, 3) if math.isfinite(value) else None
