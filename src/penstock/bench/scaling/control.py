"""The controller at work: rates that change, a burst, and starts that are not the best (figures 8 and 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from typing import Any

from penstock.bench.result import BenchResult, Plot, Table, at_least, at_most
from penstock.bench.scaling import plots
from penstock.bench.scaling.cases import NEARLY, Case, Slots, every_allocation, shown
from penstock.bench.scaling.predictions import STEADY
from penstock.bench.scaling.stand import POOL_SLOTS, Run, Stand
from penstock.bench.stats import single

CASE = Case("vld", 6.0, POOL_SLOTS, "uniform", work=0.85)
"""With less work than in the paper: a turn takes as long as its slowest task, so that 22 slots do less."""
STARTS_AT = {"extract": 3, "match": 3, "aggregate": 1}
T_MAX, T_MIN = 3.5, 1.25
"""Seconds. A turn takes all frames that wait at once, so that both are longer than in the paper. With all
slots 18 frames a second take 1.9 s where a turn itself costs 60 ms, and 3.3 s where it costs 200 ms."""
LONG = ((6.0, 6.0), (12.0, 15.0), (6.0, 13.0), (18.0, 12.0))
"""(frames a second, minutes): changes at minute 6, 21 and 34."""
BURST = ((6.0, 6.0), (12.0, 3.0), (6.0, 12.0))
HEADROOM, WORTHWHILE = 0.57, 0.1
"""Plans aim at 1.5 s: the slots that 6 frames a second begin with are the fewest for that."""
IN_A_ROW = 3
PLACED: Mapping[str, tuple[Case, Sequence[Slots]]] = {
    # By the models the best is at least 20% better than any other here, whatever turns themselves cost.
    "vld": (
        Case("vld", 8.0, 9, "uniform"),
        ({"extract": 3, "match": 5, "aggregate": 1}, {"extract": 5, "match": 3, "aggregate": 1}),
    ),
    "fpd": (
        Case("fpd", 20.0, 10, "uniform"),
        (
            {"generate": 3, "gather": 1, "detect": 4, "report": 2},
            {"generate": 2, "gather": 2, "detect": 4, "report": 2},
        ),
    ),
}
PLACED_MINUTES, PLACED_WAIT, PLACED_WINDOW = 18.0, 6.0, 6
BY_MODEL = 3
"""Of all allocations, those that are measured as they may be the best."""


@dataclass(frozen=True)
class Judged:
    """A run by its minutes: how soon it settled after changes of rate, and what changed for nothing."""

    settle_minutes: float
    in_target_share: float
    needless: int


def changes_of_rate(stand: Stand, result: BenchResult) -> None:
    """6, 12, 6, 18 frames a second with w = 3; then a burst of three minutes with w = 6."""
    long = stand.controlled(CASE, STARTS_AT, LONG, _control(stand, window=3), window=3)
    judged = judge(_minutes(long), rescales(long, stand.times.minute), [each for _, each in LONG], T_MAX)
    result.put("settle_minutes", single(judged.settle_minutes), at_most(4))
    result.put("in_target_share", single(judged.in_target_share), at_least(0.95))
    result.put("needless_reallocations", single(judged.needless), at_most(0))
    burst = stand.controlled(CASE, STARTS_AT, BURST, _control(stand, window=6), window=6)
    result.put("burst_reallocations", single(len(rescales(burst, stand.times.minute))), at_most(0))
    minute, runs = stand.times.minute, {"w = 3": (LONG, long), "w = 6": (BURST, burst)}
    result.tables.append(_decisions("changes of slots as the rate goes 6, 12, 6, 18", long, minute))
    result.setup["control"] = {
        **_control(stand, window=3),
        "work": CASE.work,
        "note": "a turn takes all frames that wait at once, or what takes T_max, so that T_max and T_min are "
        "longer than the paper's 1 and 0.45 s",
    }
    result.plots.append(Plot("control", lambda figure: plots.draw_control(figure, runs, minute, T_MAX)))


@dataclass(frozen=True)
class Ended:
    """Controlled runs of a case, and runs with fixed slots of what may be the best for it."""

    runs: Sequence[Run]
    tried: Sequence[Run]

    @property
    def best(self) -> Run:
        return min(self.tried, key=lambda run: run.seconds)

    @property
    def seconds(self) -> dict[str, float]:
        """Measured, by slots as they are shown."""
        return {shown(run.slots): run.seconds for run in self.tried}

    def converged(self, minute: float) -> bool:
        """Whether all end alike, after one change at most, and not in a poor place."""
        ends = {shown(last_slots(run)) for run in self.runs}
        once = all(len(rescales(run, minute)) <= 1 for run in self.runs)
        return len(ends) == 1 and once and self.seconds.get(ends.pop(), inf) <= NEARLY * self.best.seconds

    def row(self, run: Run, minute: float) -> list[str]:
        end = shown(last_slots(run))
        seconds = f"{self.seconds[end]:.2f}" if end in self.seconds else "-"
        return [shown(run.slots), end, str(len(rescales(run, minute))), seconds]


def convergence(
    stand: Stand, result: BenchResult, placed: Mapping[str, tuple[Case, Sequence[Slots]]] = PLACED
) -> None:
    """Two starts that are not the best, and then the best, for each application.

    The best is measured, with fixed slots: of the ends of the two, and of what the models say least of
    among all allocations. So runs that agree on a poor place have not converged.
    """
    ended, minute = {}, stand.times.minute
    for name, (case, starts) in placed.items():
        runs = [_placed(stand, case, start) for start in starts]
        tried = _candidates(stand, case, [last_slots(run) for run in runs])
        runs.append(_placed(stand, case, Ended(runs, tried).best.slots))
        ended[name] = Ended(runs, tried)
    good = [each.converged(minute) for each in ended.values()]
    result.put("converged", single(sum(good) / len(good)), at_least(1.0))
    rows = [[name, *each.row(run, minute)] for name, each in ended.items() for run in each.runs]
    columns = ["", "start (the last: the best measured)", "end", "changes", "measured there, s"]
    result.tables.append(Table("where slots end (emulated)", columns, rows))
    shown_runs = {name: each.runs for name, each in ended.items()}
    result.plots.append(
        Plot("convergence", lambda figure: plots.draw_convergence(figure, shown_runs, minute))
    )


def _candidates(stand: Stand, case: Case, ends: Sequence[Slots]) -> list[Run]:
    """Runs of what may be the best: the ends, and what the models say least of among all allocations."""
    runs = [stand.run(case, each) for each in {shown(each): each for each in ends}.values()]
    every = list(every_allocation(case.stages, case.most_slots))
    said = stand.ask(do="predict", allocations=every)
    told = [(each[STEADY], place) for place, each in enumerate(said) if each.get(STEADY) is not None]
    least = [every[place] for _, place in sorted(told)[:BY_MODEL]]
    return runs + [stand.run(case, each) for each in least if each not in ends]


def _placed(stand: Stand, case: Case, start: Slots) -> Run:
    control = {
        "problem": "least-latency",
        "most_slots": case.most_slots,
        "between_seconds": PLACED_WAIT * stand.times.minute,
        "window": PLACED_WINDOW,
    }
    minutes = [(case.inputs_per_second, PLACED_MINUTES)]
    return stand.controlled(case, start, minutes, control, window=PLACED_WINDOW)


def _control(stand: Stand, window: int) -> dict[str, Any]:
    """T_ra = w minutes, as in the paper."""
    return {
        "problem": "fewest-slots",
        "most_slots": POOL_SLOTS,
        "target_seconds": T_MAX,
        "relaxed_seconds": T_MIN,
        "between_seconds": window * stand.times.minute,
        "scale_down_seconds": window * stand.times.minute,
        "window": window,
        "headroom": HEADROOM,
        "worthwhile": WORTHWHILE,
    }


def judge(
    minutes: Sequence[float | None], changed_at: Sequence[float], parts: Sequence[float], target: float
) -> Judged:
    """From E[T^] of each minute, when slots were changed, and for how long each rate held, all in minutes.

    >>> judge([1, 1, 9, 9, 1, 1, 1, 1], [4.0], [2.0, 6.0], target=2.0)
    Judged(settle_minutes=2.0, in_target_share=1.0, needless=0)
    """
    edges = [0.0, *accumulate(parts)]
    settles, settled, needless = [], [], 0
    for number, (begin, end) in enumerate(pairwise(edges)):
        own = minutes[round(begin) : round(end)]
        within = [each is not None and each <= target for each in own]
        starts = [place for place in range(len(within)) if all(within[place : place + IN_A_ROW])]
        # A part that never settles counts as long as it is.
        first = starts[0] if starts and len(within) - starts[0] >= IN_A_ROW else len(within)
        changes = sum(begin <= each < end for each in changed_at)
        needless += max(changes - (1 if number else 0), 0)
        if number:
            settled += within[first:]
            settles.append(float(first))
    share = sum(settled) / len(settled) if settled else 0.0
    return Judged(max(settles, default=0.0), share, needless)


def rescales(run: Run, minute: float) -> list[float]:
    """When the controller changed slots, in minutes from the first input."""
    return [each["at"] / minute for each in _told(run) if each.get("changes")]


def last_slots(run: Run) -> dict[str, int]:
    """What the slots were in the end."""
    wanted = [each["wanted"] for each in _told(run) if each.get("changes")]
    if not wanted:
        return dict(run.slots)
    last = {name.rpartition(".")[2]: slots for name, slots in wanted[-1].items()}
    return {name: last[name] for name in run.case.stages}


def _told(run: Run) -> Sequence[Mapping[str, Any]]:
    return [each for each in run.told["decisions"] if "wanted" in each]


def _minutes(run: Run) -> Sequence[float | None]:
    minutes: Sequence[float | None] = run.told["by_interval"]
    return minutes


def _decisions(title: str, run: Run, minute: float) -> Table:
    rows = [
        [
            f"{each['at'] / minute:.1f}",
            shown(each["slots"]),
            shown(each["wanted"]),
            each["reason"],
        ]
        for each in _told(run)
        if each.get("changes")
    ]
    return Table(f"{title} (emulated)", ["minute", "from", "to", "why"], rows)
