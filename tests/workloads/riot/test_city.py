from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from tests.operators.riot import reference

from penstock.workloads.riot import City, find_city, generate_city
from penstock.workloads.riot.city import METADATA, TRACE, data_folder, read_city

# Share of readings outside of the valid range, as in the real trace.
OUTSIDE = {"temperature": 0.073, "humidity": 0.158, "light": 0.008, "dust": 0.099, "airquality_raw": 0.083}


@pytest.fixture(scope="module")
def city() -> City:
    return generate_city(20_000, seed=7)


def rows(city: City) -> list[reference.Row]:
    return [reference.wide(at, line) for at, line in enumerate(city.lines)]


def test_a_generated_city_has_the_statistics_of_the_real_one(city: City) -> None:
    found = rows(city)
    for name, share in OUTSIDE.items():
        low, high = reference.RANGES[name]
        outside = sum(not low <= row[name] <= high for row in found) / len(found)
        assert outside == pytest.approx(share, abs=0.01)
    classes = Counter(reference.classified(row["airquality_raw"]) for row in found)
    assert [classes[name] / len(found) for name in ("BAD", "GOOD", "VERYGOOD")] == pytest.approx(
        [0.431, 0.306, 0.263], abs=0.04
    )
    assert sum(map(len, city.lines)) / len(found) == pytest.approx(381, abs=4)
    first = found[:1000]
    assert Counter(Counter(row["sensor"] for row in first).values()) == {1: 597, 2: 172, 3: 17, 4: 2}
    assert first[-1]["time"] - first[0]["time"] == 59_000
    assert all(one["time"] <= two["time"] for one, two in pairwise(found))
    assert len(city.metadata) == 2162
    assert {row["sensor"] for row in found} <= set(city.metadata)


def test_the_same_seed_gives_the_same_city_and_another_seed_another() -> None:
    assert generate_city(50) == generate_city(50)
    assert generate_city(50).lines != generate_city(50, seed=2).lines


def test_a_generated_city_is_used_where_the_real_trace_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))
    assert data_folder() is None
    assert find_city().origin == "generated"
    made = generate_city(5)
    (tmp_path / TRACE).parent.mkdir()
    (tmp_path / TRACE).write_text("\n".join(made.lines) + "\n")
    (tmp_path / METADATA).write_text("".join(f"{id}:{text}\n" for id, text in made.metadata.items()))
    found = find_city()
    assert (found.lines, found.metadata) == (made.lines, made.metadata)
    assert found.origin == str(tmp_path / TRACE)
    assert find_city(tmp_path) == found


def test_the_real_trace_is_like_the_generated_one() -> None:
    folder = data_folder()
    if folder is None:
        pytest.skip("the real trace is not here: set PENSTOCK_DATA to the folder that holds riotbench/")
    real = read_city(folder)
    assert (len(real.lines), len(real.metadata)) == (1000, 2162)
    assert set(rows(real)[0]) == set(rows(generate_city(1))[0])
    assert len(real.readings) == 1000
