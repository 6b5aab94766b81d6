"""From what was measured to the figures, with their marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.bench.result import BenchResult, Table, at_least, at_most, within
from penstock.bench.riot.compare import OWN_POLICY, Comparison
from penstock.bench.riot.steps import Curve, Step
from penstock.bench.stats import single, summary

# EdgeWise studies the balance of utilisation and the queue times on PRED, consumption on STATS.
BALANCE_TOPOLOGY = "pred"
COLUMNS = ("topology", "side", "highest rows/s", "mean s", "p99 s", "published/s")


def put_figures(result: BenchResult, made: Mapping[str, Comparison]) -> None:
    """All figures that can be told from these topologies."""
    for name, one in made.items():
        _put_ratios(result, name, one)
    studied = made.get(BALANCE_TOPOLOGY)
    if studied is not None:
        _put_balance(result, studied)
    for one in made.values():
        for consumption, curve in one.consumptions.items():
            rate = curve.highest.rate if curve.highest else 0.0
            result.put(f"consumption_{consumption.removeprefix('at-most-')}", single(rate))
    steps = [step for one in made.values() for step in one.ours.steps if step.turn_seconds]
    shares = [step.scheduler_seconds / step.turn_seconds for step in steps]
    if shares:
        result.put("scheduler_share", summary(shares), at_most(0.02))
    result.tables.append(
        Table("highest rate held", COLUMNS, [row for one in made.values() for row in rows(one)])
    )


def _put_ratios(result: BenchResult, name: str, one: Comparison) -> None:
    ours, rival = one.ours.highest, one.plain_best
    result.put(f"{name}_throughput_ratio", single(ours.rate / rival.rate if ours else 0.0), at_least(3.0))
    if one.plain.highest is None:
        result.setup.setdefault("notes", []).append(
            f"{name}: the rival held no rate that was tried; the least of them, {rival.rate:,.0f} rows/s, "
            "stands for its highest, so that the ratio is less than the true one"
        )
    ratios = [plain.mean / own.mean for plain, own in one.in_turn if own.mean]
    result.put(f"{name}_latency_ratio", summary(ratios), at_least(3.0))
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
    own, rival = one.ours.highest_kept_up, one.plain.highest_kept_up
    if one.job.beyond and own and rival:
        result.put(f"{name}_unlimited_ratio", single(own.rate / rival.rate))
        result.put(f"{name}_unlimited_rate_rival", single(rival.rate))
    if one.as_jobs is None:
        return
    curve, step = one.as_jobs
    best = curve.highest.rate if curve.highest else 0.0
    result.put(f"{name}_as_jobs_throughput_ratio", single(best / one.plain_best.rate))
    ratios = [plain.mean / step.mean for plain, _ in one.in_turn if step.mean]
    result.put(f"{name}_as_jobs_latency_ratio", summary(ratios))


def _put_balance(result: BenchResult, one: Comparison) -> None:
    """How evenly both sides serve the stages: low is the rate that both hold, high the most of each."""
    both = [[own for _, own in one.in_turn], [plain for plain, _ in one.in_turn]]
    highs = [one.ours.highest_kept_up or one.ours.least, one.plain.highest_kept_up or one.plain.least]
    for suffix, low, most in zip(("", "_rival"), both, highs, strict=True):
        for when, steps in (("low", low), ("high", [most])):
            known = [step.utilisation_cv for step in steps if step.utilisation_cv is not None]
            if known:
                result.put(f"cv{suffix}_{when}", summary(known))
    high = one.ours.highest or one.ours.least
    if high.weight_cv is not None:
        result.put("weight_cv", single(high.weight_cv), at_most(0.3))
    if high.predicted_rate:
        result.put("rate_predicted_ratio", single(high.rate / high.predicted_rate), within(0.8, 1.2))
    pairs = one.at_most or one.in_turn
    shares = [(own.queue_share(own.heaviest), plain.queue_share(own.heaviest)) for plain, own in pairs]
    if told := [own / plain for own, plain in shares if plain]:
        result.put("tq_share", summary(told), at_most(1.0))
    times = [(_queue_seconds(own, own.heaviest), _queue_seconds(plain, own.heaviest)) for plain, own in pairs]
    if told := [own / plain for own, plain in times if plain]:
        result.put("tq_seconds_ratio", summary(told))


def _queue_seconds(step: Step, stage: str) -> float:
    return step.stages[stage]["queue_seconds"] if stage in step.stages else 0.0


def rows(one: Comparison) -> Sequence[Sequence[str]]:
    """A line of the table for each side, policy and variant."""
    curves = {"plain Spark": one.plain, f"Penstock, {OWN_POLICY}": one.ours}
    curves |= {f"Penstock, {policy}": curve for policy, curve in one.policies.items()}
    curves |= {f"Penstock, {each}": curve for each, curve in one.consumptions.items()}
    if one.fused is not None:
        curves["Penstock, fused"] = one.fused
    if one.as_jobs is not None:
        curves["Penstock, every turn a job"] = one.as_jobs[0]
    return [_row(one.job.topology, side, curve) for side, curve in curves.items()]


def _row(topology: str, side: str, curve: Curve) -> Sequence[str]:
    best = curve.highest
    if best is None:
        least = curve.least
        return topology, side, f"none (tried {least.rate:,.0f})", f"{least.mean:.2f}", f"{least.p99:.2f}", ""
    return (
        topology,
        side,
        f"{best.rate:,.0f}",
        f"{best.mean:.2f}",
        f"{best.p99:.2f}",
        f"{best.published_per_second:,.0f}",
    )
