"""M/M/k and GI/G/k by tables, closed forms and a small simulation."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from math import inf, isfinite

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.model import (
    BulkService,
    DealtTurns,
    GIGk,
    MMk,
    ModelError,
    PoolMember,
    SharedPool,
    least_slots,
)

rates = st.floats(0.01, 1000.0)
loads = st.floats(0.01, 40.0)


@pytest.mark.parametrize(
    ("busy_slots", "slots", "waiting"),
    [
        (0.5, 1, 0.5),
        (1.0, 2, 1 / 3),
        (1.6, 2, 0.7111),
        (2.0, 3, 0.4444),
        (8.0, 10, 0.4092),
        (90.0, 100, 0.2169),
    ],
)
def test_the_share_of_rows_that_wait_is_that_of_erlangs_tables(
    busy_slots: float, slots: int, waiting: float
) -> None:
    assert MMk(busy_slots, 1.0).waiting_share(slots) == pytest.approx(waiting, abs=5e-5)


@given(mu=rates, utilisation=st.floats(0.0, 0.999))
def test_one_slot_is_the_closed_form_of_mm1(mu: float, utilisation: float) -> None:
    stage = MMk(utilisation * mu, mu)
    assert stage.sojourn_seconds(1) == pytest.approx(1.0 / (mu - utilisation * mu), rel=1e-9)


@given(mu=rates, utilisation=st.floats(0.01, 0.99), scv=st.floats(0.0, 20.0))
def test_one_slot_with_poisson_arrivals_is_pollaczek_and_khinchine(
    mu: float, utilisation: float, scv: float
) -> None:
    waiting = utilisation / (1.0 - utilisation) * (1.0 + scv) / 2.0 / mu
    stage = GIGk(utilisation * mu, mu, service_scv=scv)
    assert stage.sojourn_seconds(1) == pytest.approx(waiting + 1.0 / mu, rel=1e-9)


def test_even_service_halves_the_waiting() -> None:
    # M/D/1 at 0.8: 0.8 / (2 * 0.2) = 2 service times.
    assert GIGk(0.8, 1.0, service_scv=0.0).waiting_seconds(1) == pytest.approx(2.0)


@given(load=loads, mu=rates)
def test_as_irregular_as_poisson_it_is_mmk(load: float, mu: float) -> None:
    slots = int(load) + 2
    assert GIGk(load * mu, mu).sojourn_seconds(slots) == MMk(load * mu, mu).sojourn_seconds(slots)


@given(load=loads, mu=rates, a=st.floats(0.0, 10.0), s=st.floats(0.0, 10.0))
@example(load=5.0, mu=819.6356718572174, a=0.0, s=0.0)
def test_every_slot_helps_and_each_less_than_the_one_before(
    load: float, mu: float, a: float, s: float
) -> None:
    stage = GIGk(load * mu, mu, a, s)
    first = least_slots(stage)
    seconds = [stage.sojourn_seconds(slots) for slots in range(first, first + 25)]
    gains = [now - then for now, then in itertools.pairwise(seconds)]
    slack = 1e-9 * seconds[0]
    assert all(gain >= -slack for gain in gains)
    assert all(later <= earlier + slack for earlier, later in itertools.pairwise(gains))
    assert all(each >= stage.floor_seconds for each in seconds)


@given(load=loads, mu=rates)
def test_with_no_more_slots_than_are_busy_rows_pile_up(load: float, mu: float) -> None:
    for stage in (MMk(load * mu, mu), GIGk(load * mu, mu, 0.0, 0.0)):
        assert stage.sojourn_seconds(least_slots(stage) - 1) == inf
        assert isfinite(stage.sojourn_seconds(least_slots(stage) + 1))


@pytest.mark.parametrize("busy_slots", [1.0, 500.0, 9_000.0, 9_990.0, 9_999.5])
def test_ten_thousand_slots_overflow_nowhere(busy_slots: float) -> None:
    stage = MMk(busy_slots, 1.0)
    assert 1.0 <= stage.sojourn_seconds(10_000) < 3.0
    assert 0.0 <= stage.waiting_share(10_000) <= 1.0


@pytest.mark.parametrize("busy_slots", [1.0, 500.0, 9_000.0, 9_990.0, 9_999.0])
def test_ten_thousand_slots_overflow_in_no_other_model_either(busy_slots: float) -> None:
    models = (
        GIGk(busy_slots, 1.0, 4.0, 0.25),
        BulkService(busy_slots, 0.1, 1.0),
        DealtTurns(busy_slots, 0.1, 1.0, service_scv=0.5),
    )
    for model in models:
        seconds = model.sojourn_seconds(10_000)
        assert model.floor_seconds * (1.0 - 1e-9) <= seconds < inf, model
        assert seconds <= model.sojourn_seconds(9_999) + 1e-9, model


def test_more_than_a_thousand_stages_share_a_thousand_slots() -> None:
    # All different, so that none is told by another.
    members = tuple(PoolMember(f"s{n}", 8.0 + n / 1e3, 0.01, 0.08) for n in range(1_200))
    pool = SharedPool(members)
    waiting, alone = pool.sojourn_seconds(1_000), pool.floor_seconds
    assert alone < waiting < 10.0 * alone


def test_a_large_system_waits_as_halfin_and_whitt_say() -> None:
    # With beta = (1 - rho) sqrt(k) = 1 the share that waits tends to 1 / (1 + beta Phi(beta)/phi(beta)).
    assert MMk(9_900.0, 1.0).waiting_share(10_000) == pytest.approx(0.2234, abs=0.003)


def test_each_further_slot_takes_one_step_of_the_recursion() -> None:
    stage = MMk(100.0, 1.0)
    for slots in range(101, 200):
        stage.sojourn_seconds(slots)
        assert len(stage._blocked_by_slots) == slots + 1


def test_a_stage_that_nothing_comes_to_needs_its_service_only() -> None:
    assert MMk(0.0, 4.0).sojourn_seconds(1) == 0.25
    assert least_slots(MMk(0.0, 4.0)) == 1


def simulated(slots: int, gap: Callable[[], float], service: Callable[[], float], rows: int = 6000) -> float:
    """Mean sojourn of rows at a queue, first come first served."""
    free = [0.0] * slots
    now = total = 0.0
    for _ in range(rows):
        now += gap()
        end = max(heapq.heappop(free), now) + service()
        heapq.heappush(free, end)
        total += end - now
    return total / rows


@pytest.mark.parametrize("seed", range(12))
def test_a_simulated_queue_takes_about_as_long(seed: int) -> None:
    rng = random.Random(seed)
    slots, utilisation = rng.randint(1, 8), rng.uniform(0.3, 0.8)
    a_shape, s_shape = rng.choice([1, 2, 4]), rng.choice([1, 2, 4])
    rate = utilisation * slots

    def gap() -> float:
        return rng.gammavariate(a_shape, 1.0 / (a_shape * rate))

    def service() -> float:
        return rng.gammavariate(s_shape, 1.0 / s_shape)

    model = GIGk(rate, 1.0, 1.0 / a_shape, 1.0 / s_shape)
    assert simulated(slots, gap, service) == pytest.approx(model.sojourn_seconds(slots), rel=0.2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MMk(1.0, 0.0),
            "the rate of a slot must be positive and finite, got 0.0: no row would ever be done",
        ),
        (
            lambda: GIGk(-1.0, 1.0),
            "an arrival rate must be 0 or more and finite, got -1.0: no queue could be told",
        ),
        (
            lambda: GIGk(1.0, 1.0, arrival_scv=float("nan")),
            "the squared coefficient of variation of arrivals must be 0 or more and finite, got nan: "
            "no spread is less",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ModelError) as error:
        make()
    assert str(error.value) == message
