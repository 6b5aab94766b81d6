"""Token shares on a simulated slot: the scheduler and the lines of the engine, with turns that only last."""

from __future__ import annotations

import pytest

from penstock.scheduling import Grant, Message, Scheduler, StageView, Target, TokenShare
from penstock.scheduling.line import Line

FIXED, PER_ROW = 0.02, 0.001
TICK, ROWS = 0.1, 200


class Tenant:
    """Sends 2,000 rows a second from `begin` on, twice what the one slot could do for all of them."""

    def __init__(self, name: str, share: float, begin: float, policy: TokenShare):
        self.name = name
        self.begin = begin
        self.line = Line(policy, Target(name, name, share=share))
        self.waiting: dict[int, int] = {}
        self.sent = 0
        self.done: list[tuple[float, int]] = []

    def send(self, now: float) -> None:
        while self.begin + self.sent * TICK <= now:
            self.line.arrive(self.sent, Message(str(self.sent), ROWS, self.begin + self.sent * TICK))
            self.waiting[self.sent] = ROWS
            self.sent += 1

    def view(self, since: float) -> StageView | None:
        if not self.waiting:
            return None
        return StageView(
            self.name, self.name, sum(self.waiting.values()), since, since,
            context=self.line.next_context(0.0, since), rows_next=self.line.rows_next,
            fixed_seconds=FIXED, row_seconds=PER_ROW,
        )  # fmt: skip

    def take(self, rows: int, end: float) -> None:
        self.done.append((end, rows))
        for key in sorted(self.waiting, key=self.line.place_of):
            part = min(rows, self.waiting[key])
            self.line.take(key, part)
            rows -= part
            self.waiting[key] -= part
            if not self.waiting[key]:
                del self.waiting[key]
            if not rows:
                return


def simulate(tenants: list[Tenant], policy: TokenShare, seconds: float) -> None:
    scheduler, now = Scheduler(policy, slots=1, patience_seconds=1e9, grain_seconds=1.0), 0.0
    while now < seconds:
        for tenant in tenants:
            tenant.send(now)
            if view := tenant.view(now):
                scheduler.wait(view)
        granted = scheduler.next(now)
        if not isinstance(granted, Grant):
            now += TICK
            continue
        now += FIXED + PER_ROW * granted.rows
        next(each for each in tenants if each.name == granted.stage).take(granted.rows, now)
        scheduler.finished(granted.stage, now)


def shares(tenants: list[Tenant], begin: float, end: float) -> list[float]:
    rows = [sum(count for at, count in tenant.done if begin < at <= end) for tenant in tenants]
    return [each / sum(rows) for each in rows]


@pytest.mark.parametrize("tokens", [1_000.0, 1_500.0])
def test_throughput_follows_the_shares_also_where_tokens_are_more_than_can_be_done(tokens: float) -> None:
    policy = TokenShare(rows_per_second=tokens)
    tenants = [
        Tenant("a", 0.2, 0.0, policy), Tenant("b", 0.4, 20.0, policy), Tenant("c", 0.4, 40.0, policy),
    ]  # fmt: skip
    simulate(tenants, policy, 120.0)
    assert shares(tenants, 5.0, 15.0)[0] == 1.0
    for begin in range(60, 110, 10):
        for share, wanted in zip(shares(tenants, begin, begin + 10.0), (0.2, 0.4, 0.4), strict=True):
            assert share == pytest.approx(wanted, abs=0.05)


def test_what_is_over_the_share_runs_when_no_tokened_work_waits() -> None:
    policy = TokenShare(rows_per_second=100.0)
    alone = Tenant("a", 0.5, 0.0, policy)
    simulate([alone], policy, 20.0)
    done = sum(rows for _, rows in alone.done)
    # 50 rows a second have tokens; the slot does about 900.
    assert done > 15 * 600
