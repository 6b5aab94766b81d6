from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.measure.chain import steepness
from penstock.measure.profiles import StageProfile

Readers = dict[str, list[str]]
Profiles = dict[str, StageProfile]


def profile(seconds: float, selectivity: float) -> StageProfile:
    return StageProfile(seconds, selectivity, seconds, 0.0, turns=1)


def ways(stage: str, readers: Readers, profiles: Profiles) -> list[tuple[float, float]]:
    """All ways to follow a row from a stage on, as (rows gone, seconds), each branch as far as one likes."""
    if stage not in profiles:
        return []
    known = profiles[stage]
    found = []
    branches = [[None, *ways(reader, readers, profiles)] for reader in readers[stage]]
    for choice in product(*branches):
        gone, seconds = 1.0 - known.selectivity * len(branches), known.seconds_per_row
        for way in choice:
            if way is not None:
                gone += known.selectivity * way[0]
                seconds += known.selectivity * way[1]
        found.append((gone, seconds))
    return found


def by_trying_all(stage: str, readers: Readers, profiles: Profiles) -> float | None:
    return max((gone / seconds for gone, seconds in ways(stage, readers, profiles)), default=None)


profiles_of_stages = st.builds(
    profile,
    st.floats(1e-5, 1.0),
    st.one_of(st.sampled_from([0.0, 0.1, 0.5, 1.0, 5.0]), st.floats(0.001, 5.0)),
)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Readers, Profiles]:
    """Up to six stages; each is read by some of those after it, and some are not known yet."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 6)))]
    readers = {}
    for number, name in enumerate(names):
        later = names[number + 1 :]
        readers[name] = draw(st.lists(st.sampled_from(later), unique=True, max_size=2)) if later else []
    known = {name: draw(profiles_of_stages) for name in names if draw(st.integers(0, 9)) > 0}
    return readers, known


@given(graphs())
def test_the_steepness_is_that_of_the_best_of_all_ways(graph: tuple[Readers, Profiles]) -> None:
    readers, profiles = graph
    slopes = steepness(readers, profiles)
    assert slopes.keys() == readers.keys()
    for stage, slope in slopes.items():
        best = by_trying_all(stage, readers, profiles)
        assert slope == (None if best is None else pytest.approx(best, rel=1e-9, abs=1e-12))


@given(st.lists(profiles_of_stages, min_size=1, max_size=8))
def test_on_a_path_it_is_the_formula_of_chain_scheduling(path: list[StageProfile]) -> None:
    names = [f"s{number}" for number in range(len(path))]
    readers = {name: names[number + 1 : number + 2] for number, name in enumerate(names)}
    best, left, seconds = -inf, 1.0, 0.0
    for number, each in enumerate(path):
        seconds += left * each.seconds_per_row
        left *= each.selectivity if number < len(path) - 1 else 0.0
        best = max(best, (1.0 - left) / seconds)
    slopes = steepness(readers, dict(zip(names, path, strict=True)))
    assert slopes["s0"] == pytest.approx(best, rel=1e-9)


def test_a_stage_before_a_filter_shares_in_its_steepness() -> None:
    readers: Readers = {"parse": ["filter"], "filter": ["sink"], "sink": []}
    known = {"parse": profile(0.1, 1.0), "filter": profile(0.1, 0.0), "sink": profile(9.0, 1.0)}
    assert steepness(readers, known) == pytest.approx({"parse": 5.0, "filter": 10.0, "sink": 1 / 9})


def test_what_is_not_known_is_none_and_the_stages_before_it_go_by_what_is() -> None:
    readers: Readers = {"parse": ["filter"], "filter": ["sink"], "sink": []}
    assert steepness(readers, {}) == {"parse": None, "filter": None, "sink": None}
    assert steepness(readers, {"parse": profile(0.1, 1.0)})["parse"] == 0.0
    assert steepness(readers, {"parse": profile(0.1, 0.5)})["parse"] == 5.0
    assert steepness(readers, {"parse": profile(0.1, 6.0)})["parse"] == pytest.approx(-50.0)


def test_rows_that_all_but_vanish_leave_no_trace() -> None:
    names = [f"s{number}" for number in range(40)]
    readers = {name: names[number + 1 : number + 2] for number, name in enumerate(names)}
    slopes = steepness(readers, {name: profile(0.5, 1e-30) for name in names})
    assert slopes == pytest.approx(dict.fromkeys(names, 2.0))


def test_forks_that_meet_again_many_times_stay_cheap() -> None:
    readers: Readers = {}
    for number in range(60):
        readers[f"fork {number}"] = [f"left {number}", f"right {number}"]
        readers[f"left {number}"] = [f"fork {number + 1}"]
        readers[f"right {number}"] = [f"fork {number + 1}"]
    readers["fork 60"] = []
    known = {name: profile(0.01 + 0.001 * (len(name) % 3), 0.5) for name in readers}
    slopes = steepness(readers, known)
    assert min(slope or 0.0 for slope in slopes.values()) > 0.0
