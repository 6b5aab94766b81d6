from collections import Counter

from penstock.scheduling import Grant, LongestQueue, Random, Scheduler, StageView, check_policy
from penstock.scheduling.redraw import redraw


def view(name: str, rows: int = 10, since: float = 5.0) -> StageView:
    return StageView(name, "p", rows_waiting=rows, ready_since=since, oldest_arrival=since)


def test_random_keeps_the_contract_of_policies() -> None:
    check_policy(Random())
    check_policy(Random(seed=7), seed=7)


def test_each_stage_has_the_same_chance_whatever_its_queue() -> None:
    stages = [view("a", 1), view("b", 10_000), view("c"), view("d")]
    firsts = Counter(
        min(stages, key=lambda one: Random().priority(one, float(now))).name for now in range(2000)
    )
    assert all(400 < firsts[one.name] < 600 for one in stages)


def test_another_seed_draws_another_order() -> None:
    orders = {
        tuple(sorted("abcdefgh", key=lambda name: Random(seed).priority(view(name), 6.0)))
        for seed in range(20)
    }
    assert len(orders) == 20


def test_a_stage_whose_rows_come_often_gets_no_more_turns_than_others() -> None:
    scheduler, turns = Scheduler(Random(), slots=1), Counter[str]()
    for name in "abc":
        scheduler.wait(view(name))
    for step in range(2000):
        now = 10.0 + step
        scheduler.wait(view("busy", 10 + step % 7, now))
        redraw(scheduler)
        decision = scheduler.next(now)
        assert isinstance(decision, Grant)
        turns[decision.stage] += 1
        scheduler.finished(decision.stage, now + 0.5)
        scheduler.wait(view(decision.stage, since=now + 0.5))
    assert all(400 < turns[name] < 600 for name in ("a", "b", "c", "busy"))


def test_only_lots_are_drawn_anew() -> None:
    scheduler = Scheduler(LongestQueue(), slots=1)
    scheduler.wait(view("a", 1))
    scheduler.wait(view("b", 2))
    redraw(scheduler)
    assert scheduler.upcoming == "b"
