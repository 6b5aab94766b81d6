"""The controller of slots, in a small closed loop with a queueing formula for the world."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import pytest

from penstock.errors import PenstockError
from penstock.measure.smoothing import WindowSmoothing
from penstock.model import GIGk, MMk, Network
from penstock.plan.controller import SlotController
from penstock.plan.controller_state import Hold, Rescale, SlotObservation, SlotSettings, SlotState, Visit
from penstock.plan.slots import assign_processors, min_processors

MINUTE = 60.0
SLOT_RATES = {"sift": 4.0, "match": 3.0, "aggregate": 50.0}
FEWEST = SlotSettings(
    "fewest-slots",
    most_slots=22,
    target_seconds=1.0,
    relaxed_seconds=0.7,
    between_seconds=3 * MINUTE,
    window=3,
    scale_down_seconds=3 * MINUTE,
)
LEAST = SlotSettings("least-latency", most_slots=12, between_seconds=3 * MINUTE, window=3)


def network_of(rate: float, slot_rates: Mapping[str, float] = SLOT_RATES) -> Network:
    models = {name: MMk(rate, mu) for name, mu in slot_rates.items()}
    return Network.of(models, dict.fromkeys(models, rate), rate)


def placed(network: Network, total: int) -> dict[str, int]:
    return dict(assign_processors(network, total).slots)


@dataclass
class World:
    """An application whose E[T] follows a formula that the controller's model need not know, with noise.

    A minute in which more came than could be done shows as half a minute of sojourn.
    """

    settings: SlotSettings
    slots: dict[str, int]
    noise: float = 0.0
    seed: int = 1
    truth: Callable[[float, Mapping[str, int]], float] = lambda rate, slots: network_of(rate).sojourn_seconds(
        slots
    )
    minute: int = 0
    changes: list[tuple[int, Rescale]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    measured: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.state = SlotState(dict(self.slots), 0.0)
        self.controller = SlotController(self.settings)
        self.smooth = {name: WindowSmoothing(self.settings.window) for name in ("rate", *SLOT_RATES)}

    def run(self, minutes: int, rate: float) -> None:
        for _ in range(minutes):
            self.minute += 1
            self.look(rate)

    def look(self, rate: float) -> None:
        now = self.noisy(rate)
        seen_rate = self.smooth["rate"].smooth(now)
        slot_rates = {name: self.smooth[name].smooth(self.noisy(mu)) for name, mu in SLOT_RATES.items()}
        seconds = self.noisy(min(self.truth(rate, self.slots), 30.0))
        self.measured.append(seconds)
        network, surge = network_of(seen_rate, slot_rates), now / seen_rate
        seen = SlotObservation(self.minute * MINUTE, network, self.slots, seconds, surge=surge)
        step = self.controller.step(self.state, seen)
        self.state = step.state
        self.reasons.append(step.decision.reason)
        if isinstance(step.decision, Rescale):
            self.changes.append((self.minute, step.decision))
            self.slots = dict(step.decision.plan.slots)

    def noisy(self, value: float) -> float:
        return value * (1.0 + self.rng.uniform(-self.noise, self.noise))

    @property
    def kinds(self) -> list[str]:
        return [change.kind for _, change in self.changes]

    @property
    def returns(self) -> int:
        """How often an allocation was gone back to."""
        taken = [tuple(change.plan.slots.values()) for _, change in self.changes]
        return len(taken) - len(set(taken))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [0.05, 0.1])
@pytest.mark.parametrize("rate", [6.0, 9.0, 11.0])
@pytest.mark.parametrize("settings", [FEWEST, LEAST], ids=lambda settings: settings.problem)
def test_under_a_steady_noisy_load_it_comes_to_rest(
    settings: SlotSettings, rate: float, noise: float, seed: int
) -> None:
    world = World(settings, placed(network_of(rate), 10), noise, seed)
    world.run(300, rate)
    assert len(world.changes) <= 3
    assert world.returns == 0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("hidden_seconds", [0.0, 0.25])
@pytest.mark.parametrize("factor", [0.7, 1.0, 1.4])
def test_it_comes_to_rest_although_its_model_is_wrong(
    factor: float, hidden_seconds: float, seed: int
) -> None:
    def truth(rate: float, slots: Mapping[str, int]) -> float:
        models = {name: GIGk(rate, mu, 2.0, 2.0) for name, mu in SLOT_RATES.items()}
        exact = Network.of(models, dict.fromkeys(models, rate), rate)
        return hidden_seconds + factor * exact.sojourn_seconds(slots)

    settings = SlotSettings("fewest-slots", 22, 1.5, 1.0, 3 * MINUTE, 3, MINUTE)
    world = World(settings, placed(network_of(9.0), 8), 0.05, seed, truth)
    world.run(300, 9.0)
    assert len(world.changes) <= 6
    assert world.returns <= 1
    assert sum(world.measured[-50:]) / 50 <= 1.5


def test_each_change_of_rate_is_followed_by_one_change_of_slots() -> None:
    world = World(FEWEST, placed(network_of(6.0), 7), noise=0.03)
    settled = []
    for rate in (6.0, 12.0, 6.0, 18.0):
        begin = world.minute
        world.run(20, rate)
        late = [minute for minute in range(begin, world.minute) if world.measured[minute] > 1.0]
        settled.append(max(late, default=begin - 1) + 1 - begin)
    assert world.kinds == ["more", "fewer", "more"]
    assert all(minutes <= 4 for minutes in settled)


def test_slots_that_cannot_keep_up_with_what_comes_now_are_not_waited_for() -> None:
    slots = dict(placed(network_of(6.0), 7))
    controller, state = SlotController(FEWEST), SlotState(slots, -100 * MINUTE, (0.7, 0.7))
    smoothed = network_of(6.0)
    seen = SlotObservation(MINUTE, smoothed, slots, 1.4, surge=3.0)
    assert seen.coming.sojourn_seconds(slots) == inf
    step = controller.step(state, seen)
    assert isinstance(step.decision, Rescale)
    assert step.decision.plan.total == min_processors(network_of(18.0), FEWEST.aim_seconds).total
    held = controller.step(state, SlotObservation(MINUTE, smoothed, slots, 1.4)).decision
    assert isinstance(held, Hold)


def test_what_piled_up_before_a_change_is_worked_off_before_there_are_more() -> None:
    slots, few = dict(placed(network_of(12.0), 14)), dict(placed(network_of(6.0), 7))
    left = (Visit(few, 9.0, 8.0),)
    state = SlotState(slots, 0.0, (5.0, 4.0), short_looks=2, left=left)
    seen = SlotObservation(4 * MINUTE, network_of(12.0), slots, 3.0)
    decision = SlotController(FEWEST).step(state, seen).decision
    assert isinstance(decision, Hold)
    assert "as what piled up is worked off" in decision.reason
    later = replace(seen, now=20 * MINUTE)
    assert isinstance(SlotController(FEWEST).step(state, later).decision, Rescale)


def test_a_short_burst_changes_nothing_when_the_window_is_long() -> None:
    settings = SlotSettings("fewest-slots", 22, 1.0, 0.6, 6 * MINUTE, 6, 10 * MINUTE)
    world = World(settings, placed(network_of(6.0), 8))
    for rate in (6.0, 12.0, 6.0):
        world.run(12 if rate == 6.0 else 3, rate)
    assert world.changes == []


def test_two_poor_starts_and_the_best_end_in_the_same_places_with_one_change_at_most() -> None:
    best = placed(network_of(9.0), 12)
    starts: Sequence[dict[str, int]] = (
        {"sift": 3, "match": 8, "aggregate": 1},
        {"sift": 6, "match": 4, "aggregate": 2},
        best,
    )
    ends = [World(LEAST, dict(start), noise=0.02) for start in starts]
    for world in ends:
        world.run(27, 9.0)
    assert [world.slots for world in ends] == [best] * 3
    assert [world.kinds for world in ends] == [["placed"], ["placed"], []]
    assert [minute for minute, _ in ends[0].changes] == [3]


def test_reasons_tell_what_was_measured_and_what_is_waited_for() -> None:
    world = World(FEWEST, placed(network_of(6.0), 7))
    world.run(3, 12.0)
    assert world.reasons == [
        "1 of 3 samples since the last change",
        "2 of 3 samples since the last change",
        "E[T] measured 30 s, over 1 s: 11 slots rather than 7",
    ]
    world.run(3, 12.0)
    assert world.reasons[3:5] == [
        "1 of 3 samples since the last change",
        "2 of 3 samples since the last change",
    ]
    assert world.reasons[5] == "11 slots are where they help most"


def test_fewer_slots_wait_for_their_delay() -> None:
    settings = SlotSettings("fewest-slots", 22, 1.0, 0.7, 3 * MINUTE, 3, scale_down_seconds=5 * MINUTE)
    world = World(settings, placed(network_of(6.0), 14))
    world.run(8, 6.0)
    assert world.reasons[2] == "E[T] measured 0.605 s, under 0.7 s, for 0 of 300 s"
    assert [minute for minute, _ in world.changes] == [8]
    assert world.kinds == ["fewer"]
    assert sum(world.slots.values()) == min_processors(network_of(6.0), 0.8).total


def test_changes_keep_their_distance() -> None:
    settings = SlotSettings("fewest-slots", 22, 1.0, 0.6, between_seconds=10 * MINUTE, window=2)
    world = World(settings, placed(network_of(6.0), 7))
    world.run(9, 12.0)
    assert world.reasons[-1] == "changed 540 s ago, at most every 600 s"
    world.run(1, 12.0)
    assert world.kinds == ["more"]


def test_slots_that_proved_too_few_are_not_gone_back_to_under_the_same_load() -> None:
    # What is measured has a step that no line describes: with 8 slots or fewer all is late.
    def truth(rate: float, slots: Mapping[str, int]) -> float:
        return 0.3 if sum(slots.values()) > 8 else 1.2

    world = World(FEWEST, placed(network_of(6.0), 9), truth=truth)
    world.run(60, 6.0)
    assert world.kinds == ["fewer", "more", "more", "fewer"]
    assert sum(world.slots.values()) == 9
    assert world.reasons[-1].startswith("E[T] measured 0.3 s, under 0.7 s, but no fewer slots would do")


def test_more_than_is_allowed_is_given_back() -> None:
    world = World(SlotSettings("fewest-slots", 8, 1.0, 0.2, MINUTE, 1), placed(network_of(6.0), 12))
    world.run(1, 6.0)
    assert world.kinds == ["fewer"]
    assert world.reasons == ["12 slots are in use, 8 allowed"]
    assert sum(world.slots.values()) == 8


def test_a_target_that_is_out_of_reach_takes_all_slots_and_says_so() -> None:
    settings = SlotSettings("fewest-slots", 12, 0.5, 0.1, MINUTE, 1)
    world = World(settings, placed(network_of(6.0), 7))
    world.run(1, 6.0)
    assert sum(world.slots.values()) == 12
    assert "a latency target must be at least 0.6033 s, which the work alone takes" in world.reasons[0]
    world.run(5, 6.0)
    assert len(world.changes) == 1
    assert world.reasons[-1].endswith("and all 12 slots are in use")


def test_a_load_beyond_all_slots_is_held_with_the_numbers() -> None:
    world = World(
        SlotSettings("least-latency", 12, between_seconds=MINUTE, window=1), placed(network_of(6.0), 12)
    )
    world.run(2, 40.0)
    assert world.changes == []
    assert world.reasons[-1].startswith(
        "the stages must have at least 26 slots (match 14, sift 11, aggregate 1)"
    )


def test_a_load_beyond_all_slots_gets_all_of_them() -> None:
    settings = SlotSettings("fewest-slots", 12, target_seconds=1.5, between_seconds=MINUTE, window=1)
    world = World(settings, placed(network_of(1.0), 4))
    world.run(2, 40.0)
    assert [change.plan.total for _, change in world.changes] == [12]
    assert world.slots == {"sift": 5, "match": 6, "aggregate": 1}
    assert any("12 slots rather than 4; all there are, and too few" in each for each in world.reasons)


def test_places_must_be_better_at_every_look_of_a_window() -> None:
    poor, controller = {"sift": 6, "match": 4, "aggregate": 2}, SlotController(LEAST)
    # At the third look the best places are others than before and after it.
    state, reasons = SlotState(poor, 0.0), []
    for minute, rate in enumerate((9.0, 9.0, 3.5, 9.0, 9.0, 9.0), 4):
        network = network_of(
            rate, SLOT_RATES if rate > 4.0 else {"sift": 0.9, "match": 30.0, "aggregate": 40.0}
        )
        step = controller.step(state, SlotObservation(minute * MINUTE, network, poor, 0.9))
        state = step.state if isinstance(step.decision, Hold) else state
        reasons.append(step.decision.reason)
    assert reasons[:2] == ["1 of 3 samples since the last change", "2 of 3 samples since the last change"]
    assert reasons[2:5] == [
        "other places were better at 1 of 3 looks",
        "other places were better at 1 of 3 looks",
        "other places were better at 2 of 3 looks",
    ]
    assert reasons[5].startswith("E[T] estimated")


def test_places_that_are_hardly_better_are_not_worth_a_change() -> None:
    network, best = network_of(6.0), placed(network_of(6.0), 12)
    other = {**best, "sift": best["sift"] + 1, "match": best["match"] - 1}
    controller, state = SlotController(LEAST), SlotState(other, 0.0)
    for minute in range(4, 10):
        step = controller.step(state, SlotObservation(minute * MINUTE, network, other, 0.7))
        state = step.state
    assert step.decision.reason.startswith("other places for 12 slots would spare 0.")
    assert step.decision.reason.endswith("%: not worth a change")


def test_where_the_model_sees_no_shortage_slots_are_added_by_what_was_measured() -> None:
    # 0.3 s that no model knows of, whatever the slots.
    def truth(rate: float, slots: Mapping[str, int]) -> float:
        return 0.3 + network_of(rate).sojourn_seconds(slots)

    world = World(FEWEST, placed(network_of(6.0), 7), truth=truth)
    assert min_processors(network_of(6.0), FEWEST.aim_seconds).total == 7
    world.run(60, 6.0)
    # By the factor that one allocation tells, no number would do; one more slot is tried, and is enough.
    assert world.kinds == ["more"]
    assert sum(world.slots.values()) == 8


def test_beyond_the_model_what_was_measured_leads_to_a_quarter_more_at_once() -> None:
    controller, slots = SlotController(FEWEST), placed(network_of(6.0), 9)
    state = SlotState(slots, 0.0, (1.2, 1.2), short_looks=2, pairs=((0.643, 1.2),) * 50)
    step = controller.step(state, SlotObservation(5 * MINUTE, network_of(6.0), slots, 1.2))
    assert isinstance(step.decision, Rescale)
    assert step.decision.plan.total == 11


def test_one_more_slot_at_least_is_added_on_a_shortage() -> None:
    controller, slots = SlotController(FEWEST), placed(network_of(6.0), 9)
    # What was learned says that the present slots are enough; what is measured now says otherwise.
    state = SlotState(slots, 0.0, (1.1, 3.0), short_looks=2, pairs=((0.643, 0.5),) * 50)
    step = controller.step(state, SlotObservation(5 * MINUTE, network_of(6.0), slots, 1.1))
    assert isinstance(step.decision, Rescale)
    assert step.decision.plan.total == 10


def test_where_nothing_comes_out_of_an_overloaded_stage_slots_are_added() -> None:
    controller, slots = SlotController(FEWEST), placed(network_of(6.0), 7)
    state = SlotState(slots, 0.0)
    for minute in (1, 2, 3):
        seen = SlotObservation(minute * MINUTE, network_of(12.0), slots, 0.0, inputs_done=0)
        step = controller.step(state, seen)
        state = step.state
    assert isinstance(step.decision, Rescale)
    assert step.decision.kind == "more"
    assert step.decision.reason == "E[T] measured inf s, over 1 s: 11 slots rather than 7"


def test_where_nothing_came_nothing_is_learned() -> None:
    controller, slots = SlotController(FEWEST), placed(network_of(6.0), 7)
    step = controller.step(SlotState(slots, 0.0), SlotObservation(MINUTE, network_of(6.0), slots, inf, 0))
    assert step.decision == Hold("0 of 3 samples since the last change")


def test_slots_that_someone_else_changed_are_measured_anew() -> None:
    controller, slots = SlotController(FEWEST), placed(network_of(6.0), 7)
    state = SlotState(slots, 0.0, samples=(5.0, 5.0))
    other = placed(network_of(6.0), 9)
    step = controller.step(state, SlotObservation(3 * MINUTE, network_of(6.0), other, 0.7))
    assert step.state.slots == other
    assert step.state.samples == (0.7,)
    assert step.state.changed_at == 3 * MINUTE


def test_a_step_changes_nothing_that_it_was_given_and_repeats() -> None:
    controller, slots = SlotController(FEWEST), placed(network_of(6.0), 7)
    state = SlotState(slots, 0.0, samples=(5.0, 5.0))
    seen = SlotObservation(5 * MINUTE, network_of(12.0), slots, 5.0)
    first, second = controller.step(state, seen), controller.step(state, seen)
    assert first == second
    assert state == SlotState(slots, 0.0, samples=(5.0, 5.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SlotSettings("least-latency", 0),
            "most_slots of a controller of slots must be at least 1, got 0: no stage could run",
        ),
        (
            lambda: SlotSettings("fewest-slots", 4),
            "target_seconds of a controller of slots must be positive and finite, got inf: it says enough",
        ),
        (
            lambda: SlotSettings("fewest-slots", 4, 1.0, 0.9),
            "relaxed_seconds of a controller of slots must be 0 or more and below what plans aim at, "
            "got 0.9: plans aim at 0.8 s",
        ),
    ],
)
def test_settings_that_contradict_themselves_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(PenstockError) as error:
        make()
    assert str(error.value) == message


def test_slots_must_be_told_for_every_stage() -> None:
    seen = SlotObservation(1.0, network_of(6.0), {"sift": 2, "match": 3}, 0.5)
    with pytest.raises(
        PenstockError, match="slots must be told for every stage of the network, got none for agg"
    ):
        SlotController(FEWEST).step(SlotState({"sift": 2, "match": 3}, 0.0), seen)
