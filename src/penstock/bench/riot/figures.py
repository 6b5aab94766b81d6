"""From what was measured to the figures, with their marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.bench.result import BenchResult, Mark, Table, at_least, at_most, over, under, within
from penstock.bench.riot.compare import OWN_POLICY, Comparison, Pairs
from penstock.bench.riot.predict import predicted_rate
from penstock.bench.riot.side import SLOTS
from penstock.bench.riot.steps import Curve, Step, heaviest, waited
from penstock.bench.stats import Summary, quantile, single, summary

# EdgeWise studies the balance of utilisation and the queue times on PRED, consumption on STATS.
BALANCE_TOPOLOGY = "pred"
COLUMNS = ("topology", "side", "highest rows/s", "mean s", "p99 s", "published/s")


def put_figures(result: BenchResult, made: Mapping[str, Comparison]) -> None:
    """All figures that can be told from these topologies."""
    for name, one in made.items():
        _put_ratios(result, name, one)
        _put_consumptions(result, one)
    studied = made.get(BALANCE_TOPOLOGY)
    if studied is not None and studied.job.balance:
        _put_balance(result, studied)
    else:
        note(
            result,
            "cv_*, weight_cv, rate_predicted_ratio and tq_share were not measured: they are told by part "
            f"balance of {BALANCE_TOPOLOGY}",
        )
    _put_scheduler_share(result, [step for one in made.values() for step in one.ours.steps if step.held])
    result.tables.append(
        Table("highest rate held", COLUMNS, [row for one in made.values() for row in rows(one)])
    )


def _put_ratios(result: BenchResult, name: str, one: Comparison) -> None:
    ours, rival = one.ours_best, one.plain_best
    result.put(f"{name}_throughput_ratio", single(ours.rate / rival.rate if ours else 0.0), at_least(3.0))
    if one.plain.highest is None:
        note(
            result,
            f"{name}: the rival held no rate that was tried; the least of them, {told_rate(rival.rate)} "
            "rows/s, stands for its highest, so that the ratio is less than the true one",
        )
    _put(result, f"{name}_latency_ratio", _latency_ratios(one.in_turn), at_least(3.0))
    result.put(f"{name}_rate", single(ours.rate if ours else 0.0))
    result.put(f"{name}_rate_rival", single(one.plain.highest.rate if one.plain.highest else 0.0))
    if one.fused is not None and ours is not None:
        result.put(
            f"{name}_fused_ratio", single(one.fused.highest.rate / ours.rate if one.fused.highest else 0.0)
        )
    _put_beyond(result, name, one)
    for policy, curve in one.policies.items():
        result.put(
            f"{name}_rate_{policy.replace('-', '_')}", single(curve.highest.rate if curve.highest else 0.0)
        )


def _put_beyond(result: BenchResult, name: str, one: Comparison) -> None:
    """Throughput without a limit of latency; and ours without its cheap turns."""
    own, rival = Curve((*one.ours.steps, *one.again)).highest_kept_up, one.plain.highest_kept_up
    if one.job.beyond and own and rival:
        result.put(f"{name}_unlimited_ratio", single(own.rate / rival.rate))
        result.put(f"{name}_unlimited_rate_rival", single(rival.rate))
    if one.as_jobs is None:
        return
    curve, pairs = one.as_jobs
    best = curve.highest.rate if curve.highest else 0.0
    result.put(f"{name}_as_jobs_throughput_ratio", single(best / one.plain_best.rate))
    _put(result, f"{name}_as_jobs_latency_ratio", _latency_ratios(pairs))


def _latency_ratios(pairs: Pairs) -> list[float]:
    """The rival's mean latency over ours; 0 where ours published nothing, none where the rival did not."""
    return [plain.mean / own.mean if own.mean else 0.0 for plain, own in pairs if plain.mean]


def note(result: BenchResult, text: str) -> None:
    """Says something beside the figures."""
    result.setup.setdefault("notes", []).append(text)


def _put_consumptions(result: BenchResult, one: Comparison) -> None:
    rates = {
        name.removeprefix("at-most-"): curve.highest.rate if curve.highest else 0.0
        for name, curve in one.consumptions.items()
    }
    for name, rate in rates.items():
        result.put(f"consumption_{name}", single(rate))
    if counted := {name: rate for name, rate in rates.items() if name.isdigit()}:
        best = max(counted, key=lambda name: counted[name])
        result.put("consumption_best", single(float(best)))
        note(
            result, f"consumption_best: of at-most-N, N = {best} holds the most, {counted[best]:,.0f} rows/s"
        )


def _put_scheduler_share(result: BenchResult, steps: Sequence[Step]) -> None:
    """Over all held steps together: an idle one has hardly any turns to compare with."""
    shares = [step.scheduler_seconds / step.turn_seconds for step in steps if step.turn_seconds]
    if shares:
        whole = sum(step.scheduler_seconds for step in steps) / sum(step.turn_seconds for step in steps)
        told = Summary(whole, quantile(shares, 0.1), quantile(shares, 0.9), len(shares))
        result.put("scheduler_share", told, at_most(0.02))
        worked = sum(step.scheduler_cpu_seconds for step in steps)
        result.put("scheduler_cpu_share", single(worked / sum(step.turn_seconds for step in steps)))


def _put_balance(result: BenchResult, one: Comparison) -> None:
    """How evenly both sides serve the stages, at a low and at a high rate that are the same for both."""
    for place, suffix, mark in ((1, "", under), (0, "_rival", over)):
        low, high = (_known([pair[place].utilisation_cv for pair in pairs]) for pairs in (one.low, one.high))
        _put(result, f"cv{suffix}_low", low)
        _put(result, f"cv{suffix}_high", high, mark(summary(low).value if low else 0.0))
    for step, name in zip(one.whole, ("cv_all_low", "cv_all_high"), strict=False):
        _put(result, name, _known([step.utilisation_cv]))
    if one.high and not all(plain.keeps_up for plain, _ in one.high):
        note(result, f"cv_rival_high: the rival does not keep up with {one.high[0][0].rate:,.0f} rows/s")
    for policy, name, limit in (
        (OWN_POLICY, "weight_cv", at_most(0.3)),
        ("random", "weight_cv_random", None),
    ):
        _put(result, name, _known([step.weight_cv for step in one.overloaded.get(policy, [])]), limit)
    _put_rates(result, one)
    _put_queue_time(result, one.at_most or one.in_turn)


def _put_rates(result: BenchResult, one: Comparison) -> None:
    """The highest rate against what is told by turns at lower rates, and by those at the highest itself."""
    beside = [own for pairs in (one.in_turn, one.at_most) for _, own in pairs]
    known = Curve((*beside, *one.whole, *one.ours.steps, *one.again))
    high, expected = known.highest, predicted_rate(known, SLOTS)
    if one.job.rates:
        note(result, "rate_predicted_ratio was not measured: rates were given, and the highest is not known")
    else:
        ratios = [high.rate / expected] if high and expected else []
        _put(result, "rate_predicted_ratio", ratios, within(0.8, 1.2))
    if high and high.predicted_rate:
        result.put("pool_busy", single(high.rate / high.predicted_rate))
    if high and high.weight_cv is not None:
        result.put("weight_cv_held", single(high.weight_cv))


def _put_queue_time(result: BenchResult, pairs: Pairs) -> None:
    """The part of the stage with the most work, in ours over that in the rival."""
    stage = heaviest([own for _, own in pairs])
    for name, strictly, mark in (("tq_share", False, under(1.0)), ("tq_share_strict", True, None)):
        shares = [
            (own.wait_share(stage, strictly=strictly), plain.wait_share(stage, strictly=strictly))
            for plain, own in pairs
        ]
        _put(result, name, [own / plain for own, plain in shares if plain], mark)
    seconds = [(waited(own.stages[stage]), waited(plain.stages[stage])) for plain, own in pairs]
    _put(result, "tq_seconds_ratio", [own / plain for own, plain in seconds if plain])


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _put(result: BenchResult, name: str, values: Sequence[float], mark: Mark | None = None) -> None:
    """The median of what is known; with nothing known a figure that has a mark is a figure missed."""
    if values:
        result.put(name, summary(values), mark)
    elif mark is not None:
        result.marks[name] = mark


def rows(one: Comparison) -> Sequence[Sequence[str]]:
    """A line of the table for each side, policy and variant."""
    curves = {"plain Spark": one.plain, f"Penstock, {OWN_POLICY}": one.ours}
    curves |= {f"Penstock, {_told(policy)}": curve for policy, curve in one.policies.items()}
    curves |= {f"Penstock, {each}": curve for each, curve in one.consumptions.items()}
    if one.fused is not None:
        curves["Penstock, fused"] = one.fused
    if one.as_jobs is not None:
        curves["Penstock, every turn a job"] = one.as_jobs[0]
    return [_row(one.job.topology, side, curve) for side, curve in curves.items()]


def _told(policy: str) -> str:
    return f"{policy}, once more" if policy == OWN_POLICY else policy


def told_rate(rate: float) -> str:
    """Whole rows, unless they are few.

    >>> told_rate(2330.8), told_rate(1.5625), told_rate(0.25)
    ('2,331', '1.56', '0.25')
    """
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.3g}"


def _row(topology: str, side: str, curve: Curve) -> Sequence[str]:
    best = curve.highest
    if best is None:
        least = curve.least
        return (
            topology,
            side,
            f"none (tried {told_rate(least.rate)})",
            f"{least.mean:.2f}",
            f"{least.p99:.2f}",
            "",
        )
    return (
        topology,
        side,
        told_rate(best.rate),
        f"{best.mean:.2f}",
        f"{best.p99:.2f}",
        f"{best.published_per_second:,.0f}",
    )
