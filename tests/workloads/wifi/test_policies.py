"""What subjects allow: each on their own, and the same for the same seed."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock.workloads.wifi import PRODUCTS, Campus, exposed_subjects, policies_of


def test_10000_subjects_allow_products_in_the_shares_stated() -> None:
    policies = policies_of()
    allowed = Counter((each.consumer, purpose) for each in policies for purpose in each.purposes)
    for product in PRODUCTS.values():
        wanted = 10_000 * product.share * 0.95
        assert allowed[product.consumer, product.purpose] == pytest.approx(wanted, rel=0.03)
    assert sum(count for (_, purpose), count in allowed.items() if purpose == "advertising") > 1_000
    with_hours = [each for each in policies if each.from_time is not None]
    assert len(with_hours) / len(policies) == pytest.approx(0.3, abs=0.01)
    assert any(str(each.from_time) > str(each.to_time) for each in with_hours), "none goes over midnight"
    assert len({each.subject for each in policies}) > 9_900


def test_the_same_seed_gives_the_same_policies_and_another_seed_others() -> None:
    small = Campus(40, 2, 4)
    assert policies_of(small, 3) == policies_of(small, 3)
    assert policies_of(small, 3) != policies_of(small, 4)


def test_one_in_a_hundred_is_exposed_and_never_nobody() -> None:
    marked = exposed_subjects()
    assert len(marked) == 100
    assert marked <= set(Campus().subject_names)
    assert exposed_subjects() == marked != exposed_subjects(seed=2)
    assert len(exposed_subjects(Campus(3, 1, 1))) == 1
