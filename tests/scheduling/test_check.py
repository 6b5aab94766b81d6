import math
import random
from dataclasses import dataclass, field

import pytest

from penstock.scheduling import Policy, PolicyContractBroken, StageView, check_policy


class ByRows:
    """A good policy, to be spoiled in one way each."""

    def priority(self, stage: StageView, now: float) -> float:
        return float(stage.rows_waiting)

    def reason(self, stage: StageView) -> str:
        return "fewest rows"


class Nan(ByRows):
    def priority(self, stage: StageView, now: float) -> float:
        return math.nan


class Silent(ByRows):
    def reason(self, stage: StageView) -> str:
        return ""


class Drawing(ByRows):
    rng = random.Random(0)

    def priority(self, stage: StageView, now: float) -> float:
        return self.rng.random()


@dataclass
class Counting(ByRows):
    calls: int = 0

    def priority(self, stage: StageView, now: float) -> float:
        self.calls += 1
        return 0.0


class Emptying(ByRows):
    def priority(self, stage: StageView, now: float) -> float:
        object.__setattr__(stage, "rows_waiting", 1)
        object.__setattr__(stage, "slots", stage.slots + 1)
        return 0.0


@dataclass
class Alternating(ByRows):
    seen: list[str] = field(default_factory=list, repr=False)

    def priority(self, stage: StageView, now: float) -> float:
        self.seen.append(stage.name)
        return float(len(self.seen))


def test_a_good_policy_passes() -> None:
    check_policy(ByRows())


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (Nan(), "Nan must give a number as priority, got nan: stages could not be ordered"),
        (Silent(), "Silent must give a reason of one line, got '': grants could not be explained"),
        (Emptying(), "Emptying must leave the stages as they are, got a changed stage: others see it too"),
    ],
)
def test_a_policy_that_breaks_the_contract_is_named_with_the_rule(policy: Policy, text: str) -> None:
    with pytest.raises(PolicyContractBroken) as error:
        check_policy(policy)
    assert str(error.value) == text
    assert error.value.policy is policy


def test_a_policy_that_keeps_count_is_refused() -> None:
    with pytest.raises(PolicyContractBroken) as error:
        check_policy(Counting())
    assert str(error.value) == (
        "Counting must stay Counting(calls=50), got Counting(calls=100): "
        "its state must come in as an argument"
    )


@pytest.mark.parametrize("policy", [Drawing(), Alternating()])
def test_a_policy_that_answers_differently_the_second_time_is_refused(policy: Policy) -> None:
    with pytest.raises(PolicyContractBroken) as error:
        check_policy(policy)
    assert error.value.rule == "give one stage one priority at one time"
