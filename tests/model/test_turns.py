"""Bulk service and shared pool: their limits, and small simulations of turns."""

from __future__ import annotations

import heapq
import itertools
import random
from math import exp, inf, nextafter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model import BulkService, MMk, ModelError, PooledStage, PoolMember, SharedPool, least_slots


def simulated_bulk(stage: BulkService, slots: int, rows: int = 20_000, seed: int = 1) -> float:
    """Mean sojourn of rows that come singly, by chance, where each turn takes all that waits."""
    rng = random.Random(seed)
    now, arrivals = 0.0, []
    for _ in range(rows):
        now += rng.expovariate(stage.rows_per_second)
        arrivals.append(now)
    end = total = 0.0
    first = 0
    while first < rows:
        start, last = max(end, arrivals[first]), first
        while last < rows and arrivals[last] <= start:
            last += 1
        end = start + stage.fixed_seconds + stage.row_seconds * (last - first) / slots
        total += sum(end - at for at in arrivals[first:last])
        first = last
    return total / rows


def test_with_many_rows_a_turn_a_row_stays_one_and_a_half_turns() -> None:
    stage = BulkService(1e6, 0.1, 1e-6)
    assert stage.turn(2)[0] == pytest.approx(0.2)
    assert stage.sojourn_seconds(2) == pytest.approx(0.3, rel=1e-4)


def test_with_few_rows_a_turn_it_is_the_formula_for_few_rows() -> None:
    # lambda 10, c0 0.5, c1 0.06, two slots: b 0.03, rho 0.3; nobody comes during a turn once in a thousand.
    tau, rho, b = 0.5 / 0.7, 0.3, 0.03
    few = (0.5 + rho) * (tau + 10.0 * b**2 / (1.0 - rho**2)) + 0.5 + b
    assert BulkService(10.0, 0.5, 0.06).sojourn_seconds(2) == pytest.approx(few, rel=2e-3)


def test_mostly_idle_a_row_stays_its_own_turn() -> None:
    assert BulkService(0.001, 0.1, 0.2).sojourn_seconds(4) == pytest.approx(0.15, rel=1e-3)
    assert BulkService(0.0, 0.1, 0.2).sojourn_seconds(4) == pytest.approx(0.15)


def test_fed_in_segments_no_turn_is_waited_for() -> None:
    fed = BulkService(1000.0, 0.1, 0.0005, segment_seconds=1.0)
    assert fed.sojourn_seconds(1) == pytest.approx(0.1 + 0.5 * 1.0)
    assert fed.sojourn_seconds(5) == pytest.approx(0.1 + 0.1 * 1.0)
    often = BulkService(1000.0, 0.1, 0.0005, segment_seconds=0.1)
    assert often.sojourn_seconds(1) == BulkService(1000.0, 0.1, 0.0005).sojourn_seconds(1)


@pytest.mark.parametrize(
    ("rate", "fixed", "per_row", "slots"),
    [
        (1000.0, 0.1, 0.0005, 1),
        (10.0, 0.1, 0.05, 1),
        (1.0, 0.1, 0.1, 1),
        (0.1, 0.1, 0.1, 1),
        (5.0, 0.1, 0.15, 1),
        (3.0, 0.3, 0.9, 3),
        (1.0, 0.1, 0.5, 1),
    ],
)
def test_simulated_turns_take_about_as_long(rate: float, fixed: float, per_row: float, slots: int) -> None:
    stage = BulkService(rate, fixed, per_row)
    assert simulated_bulk(stage, slots) == pytest.approx(stage.sojourn_seconds(slots), rel=0.15)


@given(
    rate=st.floats(0.01, 1e4),
    fixed=st.floats(1e-3, 2.0),
    load=st.floats(0.01, 30.0),
    scv=st.floats(0.0, 20.0),
)
def test_every_slot_helps_a_bulk_stage_and_each_less_than_the_one_before(
    rate: float, fixed: float, load: float, scv: float
) -> None:
    stage = BulkService(rate, fixed, load / rate, scv)
    first = least_slots(stage)
    assert stage.sojourn_seconds(first - 1) == inf
    seconds = [stage.sojourn_seconds(slots) for slots in range(first, first + 20) if slots > 1.001 * load]
    gains = [now - then for now, then in itertools.pairwise(seconds)]
    slack = 1e-9 * seconds[0]
    assert all(gain >= -slack for gain in gains)
    assert all(later <= earlier + slack for earlier, later in itertools.pairwise(gains))
    assert all(each >= stage.floor_seconds - slack for each in seconds)


@given(rate=st.floats(0.001, 1e4), fixed=st.floats(0.0, 2.0), work=st.floats(0.0, 0.999))
def test_the_mean_turn_solves_its_equation(rate: float, fixed: float, work: float) -> None:
    stage = BulkService(rate, fixed, work / rate)
    turn, _ = stage.turn(1)
    rows = rate * turn + exp(-rate * turn)
    assert turn == pytest.approx(fixed + rows * work / rate, rel=1e-6, abs=1e-12)


def test_a_load_that_is_all_but_a_whole_number_of_slots_takes_long_or_for_ever_but_is_no_error() -> None:
    rng = random.Random(1)
    for _ in range(5_000):
        rate, slots = rng.uniform(0.01, 1e4), rng.randint(1, 50)
        per_row = slots / rate
        for cost in (per_row, nextafter(per_row, 0.0), nextafter(per_row, inf)):
            assert BulkService(rate, 0.1, cost).sojourn_seconds(slots) > 1.0
            assert MMk(rate, 1.0 / cost).sojourn_seconds(slots) > 10.0 * cost


def pool_of(count: int, rate: float, fixed: float, per_row: float) -> SharedPool:
    return SharedPool(tuple(PoolMember(f"s{place}", rate, fixed, per_row) for place in range(count)))


def simulated_pool(pool: SharedPool, slots: int, rows: int = 12_000, seed: int = 1) -> float:
    """Mean sojourn at a pool, where the stage whose last turn began longest ago goes first."""
    rng, members = random.Random(seed), pool.members
    waiting: list[list[float]] = [[] for _ in members]
    running: dict[int, list[float]] = {}
    order = list(range(len(members)))
    events = [(rng.expovariate(each.rows_per_second), 0, place) for place, each in enumerate(members)]
    heapq.heapify(events)
    done, total = 0, 0.0
    while done < rows:
        now, ends, place = heapq.heappop(events)
        if ends:
            total += sum(now - at for at in running[place])
            done += len(running.pop(place))
        else:
            waiting[place].append(now)
            heapq.heappush(events, (now + rng.expovariate(members[place].rows_per_second), 0, place))
        while len(running) < slots and (ready := [p for p in order if waiting[p] and p not in running]):
            chosen, member = ready[0], members[ready[0]]
            order.remove(chosen)
            order.append(chosen)
            running[chosen], waiting[chosen] = waiting[chosen], []
            seconds = member.fixed_seconds + member.row_seconds * len(running[chosen])
            heapq.heappush(events, (now + seconds, 1, chosen))
    return total / done


def test_a_full_pool_is_the_rotation_of_the_design() -> None:
    pool = pool_of(8, 1000.0, 0.1, 0.0002)
    # G = 0.8 / (2 - 1.6); a row stays G/2 + c0 + c1 lambda G, and its own c1.
    assert pool.cycle_seconds(2) == pytest.approx(2.0)
    assert pool.stage_seconds("s0", 2) == pytest.approx(1.0 + 0.1 + 0.2 * 2.0, abs=0.001)


def test_a_pool_with_little_to_do_needs_a_row_s_own_turn() -> None:
    assert pool_of(8, 0.01, 0.1, 0.02).stage_seconds("s0", 2) == pytest.approx(0.12, rel=0.01)


def test_with_a_slot_for_each_stage_it_is_as_if_alone() -> None:
    pool = pool_of(4, 100.0, 0.1, 0.001)
    alone = BulkService(100.0, 0.1, 0.001).sojourn_seconds(1)
    assert pool.stage_seconds("s0", 4) == pytest.approx(alone)
    assert pool.sojourn_seconds(40) == pytest.approx(pool.floor_seconds)


@pytest.mark.parametrize(
    ("count", "rate", "slots"),
    [
        (8, 100.0, 2),
        (8, 10.0, 2),
        (8, 0.5, 1),
        (8, 3.0, 2),
        (8, 1.0, 1),
        (20, 1.0, 2),
        (4, 10.0, 3),
        (4, 10.0, 4),
    ],
)
def test_a_simulated_pool_takes_about_as_long_full_half_idle_or_idle(
    count: int, rate: float, slots: int
) -> None:
    pool = pool_of(count, rate, 0.1, 0.001 if rate == 100.0 else 0.01)
    assert simulated_pool(pool, slots) == pytest.approx(pool.stage_seconds("s0", slots), rel=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_stages_that_differ_share_a_pool_about_as_told(seed: int) -> None:
    rng = random.Random(seed)
    rates = [10 ** rng.uniform(-0.5, 2.0) for _ in range(rng.randint(2, 12))]
    members = [
        PoolMember(
            f"s{n}",
            rate,
            10 ** rng.uniform(-2.0, -0.3),
            rng.uniform(0.0, 0.5) / rate,
            weight=rate / sum(rates),
        )
        for n, rate in enumerate(rates)
    ]
    pool = SharedPool(tuple(members))
    slots = least_slots(pool) + 1
    assert simulated_pool(pool, slots) == pytest.approx(pool.sojourn_seconds(slots), rel=0.25)


def test_a_pool_of_which_every_stage_is_full_goes_round_in_one_cycle_for_all() -> None:
    members = (PoolMember("long", 5000.0, 0.5, 0.0001), *pool_of(6, 5000.0, 0.1, 0.0001).members)
    pool = SharedPool(members)
    cycle = pool.cycle_seconds(4)
    assert cycle == pytest.approx(1.1 / 0.5)
    for name, fixed in (("long", 0.5), ("s0", 0.1)):
        assert pool.stage_seconds(name, 4) == pytest.approx(cycle / 2 + fixed + 0.5 * cycle, rel=0.02)


@given(
    members=st.lists(
        st.tuples(st.floats(0.01, 1e4), st.floats(1e-3, 1.0), st.floats(0.0, 0.9)), min_size=1, max_size=12
    )
)
@settings(max_examples=60)
def test_more_slots_never_make_a_pool_slower(members: list[tuple[float, float, float]]) -> None:
    pool = SharedPool(
        tuple(PoolMember(f"s{n}", rate, c0, work / rate) for n, (rate, c0, work) in enumerate(members))
    )
    first = least_slots(pool)
    seconds = [pool.sojourn_seconds(slots) for slots in range(first, first + 20)]
    assert pool.sojourn_seconds(first - 1) == inf
    assert all(then <= now * (1 + 1e-9) for now, then in itertools.pairwise(seconds))
    one = PooledStage(pool, "s0")
    assert one.sojourn_seconds(first) == pool.stage_seconds("s0", first) >= one.floor_seconds * (1 - 1e-9)


def test_a_stage_beyond_one_slot_is_refused_in_a_pool() -> None:
    with pytest.raises(ModelError) as error:
        PoolMember("match", 1000.0, 0.1, 0.0012)
    assert str(error.value) == (
        "stage 'match' of a shared pool must have less than 1 s of work a second, got 1.2 s: "
        "its turns run on one slot; it needs slots of its own"
    )


def test_a_stage_of_another_pool_is_refused() -> None:
    with pytest.raises(ModelError, match="a stage of the pool must be one of s0, s1, got 'x'"):
        pool_of(2, 1.0, 0.1, 0.1).stage_seconds("x", 1)
