"""The cheapest set of nodes, against trying all."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.plan.elastic import ElasticError
from penstock.plan.elastic.cover import Offer, cheapest_cover

OFFERS = st.lists(
    st.builds(Offer, st.integers(1, 8), st.integers(1, 40).map(lambda x: x / 4), st.integers(0, 5)),
    min_size=1,
    max_size=4,
)


@given(OFFERS, st.integers(0, 25))
def test_no_set_that_is_enough_is_cheaper(offers: list[Offer], need: int) -> None:
    costs = [
        sum(count * offer.price for count, offer in zip(counts, offers, strict=True))
        for counts in product(*(range(offer.most + 1) for offer in offers))
        if sum(count * offer.slots for count, offer in zip(counts, offers, strict=True)) >= need
    ]
    if not costs:
        with pytest.raises(ElasticError, match="nothing could carry the plan"):
            cheapest_cover(need, offers)
        return
    counts = cheapest_cover(need, offers)
    assert all(0 <= count <= offer.most for count, offer in zip(counts, offers, strict=True))
    assert sum(count * offer.slots for count, offer in zip(counts, offers, strict=True)) >= need
    cost = sum(count * offer.price for count, offer in zip(counts, offers, strict=True))
    assert cost == pytest.approx(min(costs))


def test_of_equal_sets_the_earlier_offer_is_taken() -> None:
    assert cheapest_cover(4, [Offer(2, 2.0, 2), Offer(4, 4.0, 1)]) == (2, 0)
    assert cheapest_cover(4, [Offer(4, 4.0, 1), Offer(2, 2.0, 2)]) == (1, 0)


def test_thousands_of_slots_are_covered() -> None:
    counts = cheapest_cover(4_001, [Offer(1, 1.0, 5_000), Offer(16, 12.0, 1_000), Offer(64, 44.0, 1_000)])
    assert counts == (1, 2, 62)
