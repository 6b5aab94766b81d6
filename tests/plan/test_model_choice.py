"""Which model fits, by its recent errors."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.plan.model_choice import RECENT, ModelChoice


def test_the_first_model_serves_until_something_is_measured() -> None:
    best = ModelChoice(("gigk", "bulk")).best
    assert (best.model, best.errors, best.reason) == ("gigk", {}, "gigk until something is measured")


def test_the_closest_model_takes_over_and_the_errors_are_shown() -> None:
    choice = ModelChoice(("mmk", "gigk", "bulk"))
    for measured in (1.0, 2.0, 3.0):
        choice.learn({"mmk": 0.5 * measured, "gigk": 0.7 * measured, "bulk": 1.1 * measured}, measured)
    assert choice.best.model == "bulk"
    assert list(choice.best.errors) == ["bulk", "gigk", "mmk"]
    assert choice.best.errors == pytest.approx({"bulk": 0.1, "gigk": 0.3, "mmk": 0.5})
    assert choice.best.reason == "bulk was off by 10%, gigk by 30%, mmk by 50%, over 3 measurements"


def test_models_that_are_about_as_good_do_not_take_turns() -> None:
    choice, used = ModelChoice(("mmk", "gigk")), set()
    for number in range(200):
        better, worse = ("mmk", "gigk") if number // 10 % 2 else ("gigk", "mmk")
        choice.learn({better: 1.10, worse: 1.12}, 1.0)
        used.add(choice.best.model)
    assert used == {"mmk"}


def test_a_model_that_fitted_once_is_left_when_it_no_longer_does() -> None:
    choice = ModelChoice(("mmk", "bulk"))
    for _ in range(RECENT):
        choice.learn({"mmk": 1.0, "bulk": 3.0}, 1.0)
    for _ in range(RECENT):
        choice.learn({"mmk": 1.0, "bulk": 3.1}, 3.0)
    assert choice.best.model == "bulk"


def test_a_model_that_predicted_nothing_is_off_by_everything() -> None:
    choice = ModelChoice(("mmk", "bulk"))
    choice.learn({"bulk": 1.5}, 1.0)
    assert choice.best.reason == "bulk was off by 50%, mmk by everything, over 1 measurement"


def test_without_models_there_is_no_choice() -> None:
    with pytest.raises(PenstockError, match="a choice must have at least 1 model, got none"):
        ModelChoice(())
