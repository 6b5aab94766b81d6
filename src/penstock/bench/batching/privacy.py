"""The privacy operators' promises and costs, as figures."""

from __future__ import annotations

from statistics import median

from penstock.bench.batching.budget_crash import budget_overrun
from penstock.bench.batching.encryption import encrypt_rows_per_second
from penstock.bench.batching.key_leaks import key_leaks
from penstock.bench.batching.policy_change import policy_change_seconds
from penstock.bench.result import BenchResult, at_least, at_most
from penstock.bench.stats import single

KILLS = 20
ROWS, SECONDS = 200_000, 10.0


def privacy_figures(result: BenchResult) -> None:
    """Puts them all."""
    from penstock.spark.session import build_session

    result.put("budget_overrun", single(max(budget_overrun(KILLS), 0.0)), at_most(0.0))
    session = build_session(cores=1)
    rate = encrypt_rows_per_second(session, ROWS, SECONDS)
    result.put("encrypt_rows_per_s_per_core", single(rate), at_least(100_000))
    changes = policy_change_seconds(session)
    # What is promised is a bound: the longest counts.
    result.put("policy_change_s", single(max(changes)), at_most(2.0))
    result.put("policy_change_median_s", single(median(changes)))
    result.put("key_leaks", single(key_leaks(session)), at_most(0))
    session.stop()
