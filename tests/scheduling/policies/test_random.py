from collections import Counter

from penstock.scheduling import Random, StageView, check_policy


def view(name: str, rows: int = 10) -> StageView:
    return StageView(name, "p", rows_waiting=rows, ready_since=5.0, oldest_arrival=5.0)


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
