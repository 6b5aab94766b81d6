"""Associations as they arrive: how many, from whom, and as bursty as the real trace."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.workloads.wifi import Arrival, Campus, Crowd, generate, index_of_dispersion, replay
from penstock.workloads.wifi.associations import ARROW, BEGIN, seconds_of
from penstock.workloads.wifi.crowd import DAY_SECONDS, TRACE_PEOPLE
from penstock.workloads.wifi.trace import TRACE, busy_days, trace_file

SCALES = (1, 10, 60, 600)
# Mean of the index over the trace's five days, 03:00 to 09:00, and what generated days may differ by.
REAL_DISPERSION = (1.53, 4.07, 11.9, 70.6)
FACTOR = 1.5
SCALED_FACTOR = 2.0
REAL_ROWS_A_DAY = 22_700
SMALL = Campus(subjects=50, buildings=4, access_points=8)


def dispersions(days: list[np.ndarray]) -> list[float]:
    return [
        float(np.mean([index_of_dispersion(each, scale, DAY_SECONDS) for each in days])) for scale in SCALES
    ]


def rows_of(arrivals: list[Arrival]) -> pa.Table:
    return pa.concat_tables([table for _, table in arrivals])


def the_trace() -> Path:
    path = trace_file()
    if path is None:
        pytest.skip(f"the real trace is not here: set PENSTOCK_DATA to the folder that holds {TRACE}")
    return path


def test_generated_days_are_as_bursty_as_the_real_ones_at_every_scale() -> None:
    campus = Campus(subjects=TRACE_PEOPLE)
    days = [Crowd().day(campus, np.random.default_rng([7, number])) for number in range(40)]
    assert np.mean([len(day) for day in days]) == pytest.approx(REAL_ROWS_A_DAY, rel=0.05)
    for found, real in zip(dispersions([day.seconds for day in days]), REAL_DISPERSION, strict=True):
        assert real / FACTOR < found < real * FACTOR


def test_generated_people_move_as_often_as_the_real_ones() -> None:
    day = Crowd().day(Campus(), np.random.default_rng(3))
    order = np.argsort(day.subjects, kind="stable")
    same_person = np.diff(day.subjects[order]) == 0
    moved = (np.diff(day.access_points[order]) != 0)[same_person]
    assert moved.mean() == pytest.approx(0.16, abs=0.02)


def test_the_real_trace_is_what_the_model_was_fitted_to() -> None:
    days = busy_days(the_trace())
    assert dispersions([day.seconds for day in days]) == pytest.approx(REAL_DISPERSION, rel=0.01)
    assert np.mean([len(day) for day in days]) == pytest.approx(REAL_ROWS_A_DAY, rel=0.01)
    assert len({person for day in days for person in day.subjects.tolist()}) <= TRACE_PEOPLE


def test_a_replay_of_10000_subjects_is_bursty_like_generated_arrivals() -> None:
    real = [replay(900, 60, path=the_trace(), first_day=day) for day in range(5)]
    made = [generate(900, 60, seed=seed) for seed in range(10)]
    for scale in (0.1, 1.0, 5.0):
        found, wanted = (
            np.mean([index_of_dispersion(seconds_of(each), scale, 60.0) for each in runs])
            for runs in (made, real)
        )
        assert wanted / SCALED_FACTOR < found < wanted * SCALED_FACTOR
    names = set(rows_of(real[2])["subject"].to_pylist())
    assert 6000 < len(names) <= 10_000
    assert names <= set(Campus().subject_names)
    assert rows_of(replay(900, 60, path=the_trace())).equals(rows_of(real[2]))


def test_a_replay_without_the_trace_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))
    with pytest.raises(PenstockError) as error:
        replay(100, 1)
    assert str(error.value) == (
        f"a replay must have the trace, got no {TRACE}: set PENSTOCK_DATA to the folder that holds it, "
        "or generate associations"
    )


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 3000), st.sampled_from([0.5, 1.0, 7.3]), st.integers(0, 99))
def test_arrivals_are_as_many_as_asked_for_in_ticks_and_strictly_by_time(
    rate: int, seconds: float, seed: int
) -> None:
    if round(rate * seconds) < 1:
        return
    arrivals = generate(rate, seconds, seed=seed, campus=SMALL)
    assert sum(len(table) for _, table in arrivals) == round(rate * seconds)
    moments = seconds_of(arrivals)
    assert all(one < two for one, two in pairwise(moments))
    assert moments[0] >= 0
    assert moments[-1] < seconds
    for due, table in arrivals:
        assert table.schema == ARROW
        inside = table["at"].cast("int64").to_numpy() / 1e6 - BEGIN.timestamp()
        assert due - 0.1 - 1e-6 <= inside.min()
        assert inside.max() < due
        assert len(table) > 0


def test_the_same_seed_gives_the_same_arrivals_and_another_seed_others() -> None:
    one, again, other = (rows_of(generate(500, 2, seed=seed)) for seed in (4, 4, 5))
    assert one.equals(again)
    assert not one.equals(other)


def test_a_campus_of_10000_subjects_uses_its_200_buildings_and_2000_access_points() -> None:
    campus, rows = Campus(), rows_of(generate(3000, 60))
    assert (len(campus.subject_names), len(campus.building_names), len(campus.places)) == (10_000, 200, 2000)
    assert len(set(rows["subject"].to_pylist())) > 9_900
    points = set(rows["ap"].to_pylist())
    assert 1_900 < len(points) <= 2_000
    assert {campus.places[each] for each in points} == set(campus.building_names)
    macs = dict(zip(campus.subject_names, campus.macs, strict=True))
    assert [macs[name] for name in rows["subject"].to_pylist()] == rows["mac"].to_pylist()
    assert len(set(campus.macs)) == 10_000


def test_nothing_to_arrive_and_an_impossible_campus_are_refused() -> None:
    with pytest.raises(PenstockError, match=r"got 0 rows/s for 5 s: nothing would arrive"):
        generate(0, 5)
    with pytest.raises(PenstockError, match=r"got 5, 3 and 4: nobody could be anywhere"):
        Campus(5, 3, 4)
