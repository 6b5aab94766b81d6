"""The numbers that are known of one pass over the real trace, out of turns of any size and a restart."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.operators.riot import reference
from tests.operators.riot.inputs import assert_close, chosen
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Turns
from tests.workloads.riot.test_on_spark import segments

from penstock import sinks, sources
from penstock.workloads.riot import City, generate_city, topology
from penstock.workloads.riot.city import data_folder, read_city

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NULLS = {"temperature": 73, "humidity": 158, "light": 8, "dust": 99, "airquality_raw": 83}
CLASSES = {"BAD": 431, "GOOD": 306, "VERYGOOD": 263}


def played() -> City:
    folder = data_folder()
    return generate_city(1000, seed=4) if folder is None else read_city(folder)


def rows_in(path: Path, table: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(f"SELECT * FROM {table}")]


@pytest.mark.parametrize("fused", [False, True], ids=["unfused", "fused"])
@pytest.mark.parametrize("name", ["etl", "pred"])
def test_turns_of_any_size_and_a_restart_in_the_middle_change_no_number(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, name: str, fused: bool
) -> None:
    city, source, path = played(), spool(), tmp_path / "results.db"
    what, turns = topology(name), Turns()
    ends: dict[str, Any] = {"publish": sinks.Table(path, "published")}
    if name == "etl":
        ends |= {"table": sinks.Table(path, "stored"), "city": city}
    for table in segments(city.lines, 90):
        source.append(table)
    for begins in (True, False):
        runs = engine(consumption="at-most-100")
        runs.on_turn(turns)
        runs.submit(what.function(sources.FromSpool(source, what.schema), fused=fused, **ends))
        if begins:
            eventually(lambda: len(turns.of(f"{name}.{first_of(name, fused)}")) > 4, 60)
        else:
            runs.drain(120)
        runs.stop()
    said = rows_in(path, "published")
    if name == "etl":
        assert_cleaned(city, rows_in(path, "stored"))
        assert sorted(row["msgid"] for row in said) == list(range(1000))
    else:
        assert_classified(city, [json.loads(row["payload"]) for row in said])


def first_of(name: str, fused: bool) -> str:
    return "read" if fused and name == "etl" else "senml_parse"


def assert_cleaned(city: City, stored: list[dict[str, Any]]) -> None:
    columns = ("msgid", "time", "longitude", "latitude", "source", *reference.QUANTITIES, "location", "type")
    assert_close(chosen(stored, *columns), chosen(reference.cleaned(city.lines, city.metadata), *columns))
    assert sum(row["location"] is not None for row in stored) == 1000
    raw = [reference.wide(at, text) for at, text in enumerate(city.lines)]
    # What was out of range was made up from other values, or is 0.0 where there were none.
    made_up = Counter(
        name
        for row in stored
        for name, (low, high) in reference.RANGES.items()
        if row[name] != raw[row["msgid"]][name] or not low <= row[name] <= high
    )
    assert city.origin == "generated" or made_up == NULLS


def assert_classified(city: City, said: list[dict[str, Any]]) -> None:
    assert len(said) == 2000
    wide = [reference.wide(at, text) for at, text in enumerate(city.lines)]
    expected = Counter(reference.classified(row["airquality_raw"]) for row in wide)
    assert Counter(row["class"] for row in said if "class" in row) == expected
    assert city.origin == "generated" or expected == CLASSES
    predictions = sorted(row["prediction"] for row in said if "prediction" in row)
    assert predictions == pytest.approx(sorted(reference.predicted(row) or 0.0 for row in wide))
