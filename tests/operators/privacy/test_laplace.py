from __future__ import annotations

import statistics
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.errors import PenstockError
from penstock.operators.privacy.laplace import _mechanism, with_noise


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 0.1), (10, 0.5), (3 << 20, 1.0)])
def test_the_noise_is_laplace_of_the_scale_sensitivity_by_epsilon(sensitivity: int, epsilon: float) -> None:
    drawn = with_noise([1000] * 2000, sensitivity, epsilon)
    scale = sensitivity / epsilon
    off = [each - 1000 for each in drawn]
    assert statistics.fmean(map(abs, off)) == pytest.approx(scale, rel=0.1)
    # A Laplace variable is twice as far off as its mean deviation with probability exp(-2).
    assert sum(abs(each) > 2 * scale for each in off) / 2000 == pytest.approx(0.135, abs=0.04)
    assert abs(statistics.fmean(off)) < 0.15 * scale
    assert {type(each) for each in drawn} == {int}


@settings(max_examples=40, deadline=None)
@given(some.integers(1, 1 << 40), some.floats(1e-6, 10.0))
def test_what_is_proven_never_exceeds_what_is_promised(sensitivity: int, epsilon: float) -> None:
    assert epsilon * 0.999 <= _mechanism(sensitivity, epsilon).map(sensitivity) <= epsilon


def test_no_two_draws_are_the_same() -> None:
    assert with_noise([0] * 20, 1, 0.01) != with_noise([0] * 20, 1, 0.01)


def test_without_opendp_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    _mechanism.cache_clear()
    with pytest.raises(PenstockError) as caught:
        with_noise([0], 1, 1.0)
    assert str(caught.value) == (
        "differential privacy must have OpenDP, but import of opendp.prelude halted; None in sys.modules: "
        "install it with pip install 'opendp>=0.16,<0.17'"
    )
