"""What models recommend, against what is best among it and its neighbours (figures 6 and 7 of DRS)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import StatisticsError, correlation, fmean, median

from penstock.bench.result import BenchResult, Plot, Table, at_least, at_most
from penstock.bench.scaling import plots
from penstock.bench.scaling.cases import (
    NEARLY,
    Case,
    Slots,
    distance,
    every_allocation,
    neighbours,
    shown,
)
from penstock.bench.scaling.predictions import CHOSEN, KINDS, STEADY
from penstock.bench.scaling.stand import Run, Stand
from penstock.bench.stats import single, summary

NEIGHBOURS = 5
CLOSE = 1.15
"""Runs that took no longer than this times the best are close: one of each does not tell which is better."""
PLANS = 3
"""How often the plan is made anew from what was measured under the last one, until it stays."""

Predicted = Mapping[str, float | None]


@dataclass
class Tried:
    """All allocations of a case that were run, and what each kind of model had said of them."""

    case: Case
    recommended: Slots = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    predicted: list[Predicted] = field(default_factory=list)
    plans: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> Run:
        return min(self.runs, key=lambda run: run.seconds)

    def seconds_of(self, slots: Slots) -> float:
        return next(run.seconds for run in self.runs if dict(run.slots) == dict(slots))

    def is_best(self, slots: Slots) -> bool:
        """Whether an allocation that was run is the best, or as good."""
        return self.seconds_of(slots) <= NEARLY * self.best.seconds

    def pairs(self, kind: str) -> list[tuple[float, float]]:
        """(predicted, measured), where that kind of model said anything; inf for what it calls endless."""
        both = zip(self.predicted, self.runs, strict=True)
        return [(_endless(each[kind]), run.seconds) for each, run in both if kind in each]

    @property
    def rivals(self) -> str:
        """How many other allocations were run, and whether there are no more."""
        others = len(self.runs) - 1
        every = every_allocation(self.case.stages, sum(self.recommended.values()))
        return f"{others}, all there are" if others == sum(1 for _ in every) - 1 else str(others)


def tell_allocations(result: BenchResult, tried: Sequence[Tried]) -> None:
    """The figures of all that was tried."""
    found = [each.is_best(each.recommended) for each in tried]
    result.put("best_found", single(sum(found) / len(found)), at_least(1.0))
    pairs = [pair for each in tried for pair in each.pairs(CHOSEN)]
    if len(pairs) > 2:
        result.put("rank_correlation", single(rank_correlation(pairs)), at_least(0.95))
    # Cases differ by more than the allocations of one do, so that over all of them ranks are easily right.
    within = [rank_correlation(own) for each in tried if len(own := each.pairs(CHOSEN)) > 2]
    if within:
        result.put("rank_correlation_within", single(fmean(within)))
    errors = {kind: relative_errors(tried, kind) for kind in KINDS}
    result.put("model_error", summary(errors[CHOSEN]), at_most(0.15))
    result.put("model_error_mmk", summary(errors["mmk"]))
    in_the_long_run = relative_errors(tried, STEADY)
    result.put("model_error_long_run", summary(in_the_long_run))
    steady = [pair for each in tried for pair in each.pairs(STEADY)]
    if len(steady) > 2:
        result.put("rank_correlation_long_run", single(rank_correlation(steady)))
    # M/M/k tells of the long run alone, and so do both here.
    better = median(in_the_long_run) < median(errors["mmk"]) if errors["mmk"] else True
    result.put("model_better_than_mmk", single(float(better)), at_least(1.0))
    meters = [
        abs(run.told["meter_seconds"] - run.seconds) / run.seconds
        for each in tried
        for run in each.runs
        if run.told["meter_seconds"] is not None
    ]
    if meters:
        result.put("meter_error", summary(meters))
    result.setup["predicted"] = (
        "by models that go through turns: E[T] of the seconds that are measured, from nothing; by others, "
        "and as model_error_long_run: in the long run, which queues near their limit take minutes to reach"
    )
    result.setup["pairs"] = {each.case.name: _told_pairs(each) for each in tried}
    result.setup["model_errors"] = {kind: median(each) for kind, each in errors.items() if each}
    result.setup["models"] = {each.case.name: dict(each.models) for each in tried}
    result.tables.append(_table(tried))
    result.plots += [
        Plot("allocations", lambda figure: plots.draw_allocations(figure, tried)),
        Plot("predicted", lambda figure: plots.draw_predicted(figure, tried)),
    ]


def _told_pairs(tried: Tried) -> dict[str, list[float | None]]:
    """By allocation: seconds predicted, predicted of the long run, and measured."""
    both = zip(tried.predicted, tried.runs, strict=True)
    return {shown(run.slots): [said.get(CHOSEN), said.get(STEADY), run.seconds] for said, run in both}


def try_case(
    stand: Stand,
    case: Case,
    most_neighbours: int = NEIGHBOURS,
    plans: int = PLANS,
    rivals: Sequence[str] = (),
) -> Tried:
    """The plan from what was measured, made anew until it stays, then its neighbours and what rivals plan."""
    tried = Tried(case)
    slots: Slots = case.first_slots
    known: dict[str, Run] = {}
    for _ in range(plans):
        before = known[shown(slots)] = stand.run(case, slots)
        made = stand.ask(do="plan", most_slots=case.most_slots)
        if "slots" not in made.get(CHOSEN, {}):
            break
        tried.plans, tried.models = made, before.told["models"]
        wanted = _in_order(made[CHOSEN]["slots"], case)
        if wanted == dict(slots):
            break
        slots = wanted
    tried.recommended = dict(slots)
    around = neighbours(slots, most_neighbours)
    said = stand.predict(around)
    # Of those as near, the ones that would not keep up, by the models, come last.
    nearest = sorted(
        zip(around, said, strict=True),
        key=lambda pair: (distance(slots, pair[0]), _endless(pair[1].get(STEADY))),
    )[:most_neighbours]
    others = _of_rivals(tried, rivals, [tried.recommended, *(each for each, _ in nearest)])
    own = stand.predict([tried.recommended, *others])
    tried.predicted = [own[0], *(told for _, told in nearest), *own[1:]]
    chosen = [tried.recommended, *(each for each, _ in nearest), *others]
    # Inputs come alike in all runs, and their rows take as long: what was run for the plan counts.
    tried.runs = [_median_run(stand, case, each, known.get(shown(each))) for each in chosen]
    _run_close_ones_again(stand, tried)
    return tried


def _run_close_ones_again(stand: Stand, tried: Tried) -> None:
    """So that what was best by chance alone is not taken for the best.

    Medians may bring others close to the best, until all that are have been run as often.
    """
    settled: set[int] = set()
    while close := _close_ones(tried) - settled:
        if not settled and len(close) == 1:
            return
        for place in sorted(close):
            tried.runs[place] = _again(stand, tried.runs[place])
        settled |= close


def _close_ones(tried: Tried) -> set[int]:
    """Places of what was recommended, and of all that took hardly longer than the best."""
    most = CLOSE * tried.best.seconds
    return {0, *(place for place, run in enumerate(tried.runs) if run.seconds <= most)}


def _again(stand: Stand, first: Run) -> Run:
    """The median of this run and some more, each with arrivals of its own."""
    seeds = range(1 + stand.times.repeats, 1 + stand.times.repeats + stand.times.again)
    runs = [first, *(stand.run(first.case, first.slots, seed=seed) for seed in seeds)]
    return sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]


def _of_rivals(tried: Tried, kinds: Sequence[str], chosen: Sequence[Slots]) -> list[Slots]:
    """What these kinds of models recommend, each once, without what is run anyway."""
    found: list[Slots] = []
    for kind in kinds:
        slots = tried.plans.get(kind, {}).get("slots")
        if isinstance(slots, dict):
            wanted = _in_order(slots, tried.case)
            if wanted not in (*chosen, *found):
                found.append(wanted)
    return found


def _endless(seconds: float | None) -> float:
    """What is not told, as a queue would grow without end."""
    return inf if seconds is None else seconds


def _median_run(stand: Stand, case: Case, slots: Slots, known: Run | None) -> Run:
    """The median of as many runs as are asked for, each with arrivals of its own."""
    numbers = range(0 if known is None else 1, stand.times.repeats)
    runs = [stand.run(case, slots, seed=1 + number) for number in numbers]
    every = sorted([*runs, *([] if known is None else [known])], key=lambda run: run.seconds)
    return every[len(every) // 2]


def _in_order(slots: Slots, case: Case) -> dict[str, int]:
    return {name: slots[name] for name in case.stages}


def relative_errors(tried: Sequence[Tried], kind: str) -> list[float]:
    """What a model calls endless was done all the same: it is wrong by all of it."""
    return [
        abs(said - real) / real if said < inf else 1.0 for each in tried for said, real in each.pairs(kind)
    ]


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's, over (predicted, measured); equals have the mean of their ranks. 0 where all are equal.

    >>> round(rank_correlation([(1.0, 10.0), (2.0, 30.0), (3.0, 20.0), (4.0, 40.0)]), 3)
    0.8
    """
    said, real = ([pair[side] for pair in pairs] for side in (0, 1))
    try:
        return correlation(_ranks(said), _ranks(real))
    except StatisticsError:
        return 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    # Of equals the first and the last: what lies between them has the same mean.
    return [(bisect_left(order, each) + bisect_right(order, each) - 1) / 2 for each in values]


def _table(tried: Sequence[Tried]) -> Table:
    rows = []
    for each in tried:
        said = each.predicted[0].get(CHOSEN)
        rows.append(
            [
                each.case.name,
                shown(each.recommended),
                "-" if said is None else f"{said:.2f}",
                f"{each.seconds_of(each.recommended):.2f}",
                shown(each.best.slots),
                f"{each.best.seconds:.2f}",
                "yes" if each.is_best(each.recommended) else "no",
                each.rivals,
            ]
        )
    columns = ["case", "recommended", "predicted s", "measured s", "best", "its s", "best or within 5%"]
    columns.append("rivals")
    return Table("recommended slots and the best of their neighbourhood (emulated)", columns, rows)
