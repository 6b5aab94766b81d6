"""Whole applications from source to sink, compared with plain Python."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.operators.riot import reference
from tests.operators.riot.inputs import ARRIVED, assert_close, chosen, is_close, line, line_table
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import Kept, dead_letters

from penstock import Engine, sources
from penstock.workloads.riot import PAPER_INSTANCES, City, generate_city, topology

pytestmark = pytest.mark.spark
CITY = generate_city(1000, seed=3)
WIDE = [reference.wide(at, text) for at, text in enumerate(CITY.lines)]


@dataclass
class Run:
    """What an application made of its input."""

    published: Kept
    stored: Kept

    def payloads(self) -> list[dict[str, Any]]:
        return [{"msgid": row["msgid"], **json.loads(row["payload"])} for row in self.published.rows]


Runner = Callable[..., Run]


@pytest.fixture
def run(
    engine: EngineFactory, spool: SpoolFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Runner:
    # Nothing but what the test hands in: also where the real trace is there.
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))

    def apply(
        name: str,
        tables: Sequence[pa.Table],
        *,
        fused: bool = False,
        city: City = CITY,
        apart: bool = False,
        instances: Mapping[str, int] | None = None,
    ) -> Run:
        source, made = spool(), Run(Kept(), Kept())
        what = topology(name)
        ends: dict[str, Any] = {"publish": made.published.sink}
        if what.stored_rows:
            ends["table"] = made.stored.sink
        runs: Engine = engine(policy="longest-queue")
        known: dict[str, Any] = {} if name == "pred" else {"city": city}
        if instances:
            known["instances"] = instances
        runs.submit(what.function(sources.FromSpool(source, what.schema), fused=fused, **known, **ends))
        for table in tables:
            source.append(table)
            if apart:
                runs.drain(120)
        runs.drain(120)
        runs.stop()
        return made

    return apply


def segments(lines: Sequence[str], size: int = 250) -> list[pa.Table]:
    return [line_table(lines[at : at + size], at) for at in range(0, len(lines), size)]


both = pytest.mark.parametrize("fused", [False, True], ids=["unfused", "fused"])


def instances_of(name: str, fused: bool) -> dict[str, Any]:
    """Unfused with as many instances of each operator as in the paper: some need the whole pool, or more."""
    return {"fused": fused, "instances": None if fused else PAPER_INSTANCES[name]}


@both
def test_etl_stores_and_publishes_every_reading_clean_and_annotated(run: Runner, fused: bool) -> None:
    made = run("etl", segments(CITY.lines), **instances_of("etl", fused))
    expected = reference.cleaned(CITY.lines, CITY.metadata)
    columns = ("msgid", "time", "longitude", "latitude", "source", *reference.QUANTITIES, "location", "type")
    assert_close(chosen(made.stored.rows, *columns), chosen(expected, *columns))
    assert {row["arrived"] for row in made.stored.rows + made.published.rows} == {ARRIVED}
    said = [{"msgid": row["msgid"], "time": row["bt"], **senml_fields(row["e"])} for row in made.payloads()]
    assert_close(chosen(said, *columns), chosen(expected, *columns))


def senml_fields(entries: list[dict[str, str]]) -> dict[str, Any]:
    return {each["n"]: each["sv"] if "sv" in each else float(each["v"]) for each in entries}


@both
def test_pred_publishes_the_class_and_the_error_of_every_reading(run: Runner, fused: bool) -> None:
    few = [line(f"s{number % 30}", [row[n] for n in reference.QUANTITIES]) for number, row in enumerate(WIDE)]
    wide = [reference.wide(at, text) for at, text in enumerate(few)]
    made = run("pred", segments(few), apart=True, **instances_of("pred", fused)).payloads()
    assert len(made) == 2 * len(few)
    classes = [row for row in made if "class" in row]
    expected = [{**row, "class": reference.classified(row["airquality_raw"])} for row in wide]
    assert chosen(classes, "msgid", "sensor", "class") == chosen(expected, "msgid", "sensor", "class")
    errors = sorted((row for row in made if "error" in row), key=lambda row: row["msgid"])
    blocks = {row["msgid"]: row["average"] for row in reference.block_averages(wide)}
    averages: dict[str, list[float | None]] = defaultdict(lambda: [None])
    ahead: dict[str, list[float | None]] = defaultdict(list)
    for row, found in zip(wide, errors, strict=True):
        if row["msgid"] % 250 == 0:
            ahead = averages_of(wide[row["msgid"] : row["msgid"] + 250], blocks)
        if row["msgid"] in blocks:
            averages[row["sensor"]].append(blocks[row["msgid"]])
        prediction = reference.predicted(row)
        assert prediction is not None
        assert found["prediction"] == pytest.approx(prediction)
        # Apart, averages may come turns before or after the predictions of the same rows; together, never.
        possible = averages[row["sensor"]][-1:] if fused else averages[row["sensor"]] + ahead[row["sensor"]]
        off = [None if each is None else (row["airquality_raw"] - prediction) / each for each in possible]
        assert any(is_close(found["error"], each) for each in off)
    assert all(row["error"] is not None for row in errors[-250:])


def averages_of(rows: Sequence[Any], blocks: dict[int, float]) -> dict[str, list[float | None]]:
    """The averages that rows which came together complete."""
    found: dict[str, list[float | None]] = defaultdict(list)
    for row in rows:
        if row["msgid"] in blocks:
            found[row["sensor"]].append(blocks[row["msgid"]])
    return found


@both
def test_stats_publishes_trends_moments_and_counts_of_every_series(run: Runner, fused: bool) -> None:
    chance = random.Random(6)
    sensors = list(CITY.metadata)[:20]
    lines = [line(chance.choice(sensors), [row[n] for n in reference.QUANTITIES]) for row in WIDE]
    made = run("stats", segments(lines), **instances_of("stats", fused)).payloads()
    wide = [reference.wide(at, text) for at, text in enumerate(lines)]
    rows = [each for row in wide for each in reference.observations(row, with_source=False)]
    order = ("msgid", "name")
    for column, expected in (
        ("predictions", reference.trends(reference.kalman(rows))),
        ("moment", reference.moments(rows)),
        ("count", reference.distinct(rows)),
    ):
        columns = ("msgid", "name", column)
        found = [row for row in made if column in row]
        assert_close(chosen(found, *columns, order=order), chosen(expected, *columns, order=order))
    # In the long run a line gives 15; here each of 100 series is without a trend ten times.
    assert len(made) == 15 * len(lines) - 100 * 10


@both
def test_train_answers_every_request_with_a_regression_and_a_tree(run: Runner, fused: bool) -> None:
    asked = topology("train").trace(CITY).take(list(range(8))).to_pylist()
    rows = [{**each, "arrived": ARRIVED, "msgid": at} for at, each in enumerate(asked)]
    schema = pa.schema(
        [
            ("rowstart", pa.int64()),
            ("rowend", pa.int64()),
            ("arrived", pa.timestamp("us", "UTC")),
            ("msgid", pa.int64()),
        ]
    )
    tables = [pa.Table.from_pylist(rows[at : at + 4], schema=schema) for at in (0, 4)]
    made = run("train", tables, **instances_of("train", fused)).payloads()
    regressions = [row for row in made if "coefficients" in row["model"]]
    assert sorted(row["msgid"] for row in regressions) == list(range(8))
    assert sorted(row["msgid"] for row in made if row not in regressions) == list(range(8))
    assert {row["rows"] for row in made} == {100}


def test_bad_lines_strangers_doubled_ids_and_a_clock_that_runs_back_harm_no_other(
    run: Runner, state: Path
) -> None:
    good = [
        text.replace(str(row["time"]), str(10**12 - row["msgid"]))
        for text, row in zip(CITY.lines[:60], WIDE, strict=False)
    ]
    assert all(one["time"] > two["time"] for one, two in pairwise(map(reference.wide, range(60), good)))
    stranger = line("nobody knows me", [8.0, 53.7, 0.0, 411.02, 20.0])
    bad = ["nonsense", good[0].replace('"dust"', '"dirt"'), good[1].replace('"v":"', '"v":"x', 3), stranger]
    doubled = line_table(good[:10])
    made = run("etl", [line_table(good), line_table(bad, first=60), doubled], apart=True)
    expected = reference.cleaned(good, CITY.metadata)
    columns = ("msgid", "time", "source", "location", "type")
    found = chosen(made.stored.rows, *columns)
    assert len(found) == 70
    assert [row for at, row in enumerate(found) if row not in found[:at]] == chosen(expected, *columns)
    reasons = sorted(letter["dead_letter"] for letter in dead_letters(state, "etl", "senml_parse"))
    assert reasons[:2] == [
        "field dust is missing",
        f"field longitude must be a number, got x{_longitude(good[1])}",
    ]
    assert reasons[2].startswith("not SenML: expected timestamp")
    assert len(reasons) == 3
    [letter] = dead_letters(state, "etl", "annotate")
    assert letter["dead_letter"] == "no metadata for sensor nobody knows me"
    raw = json.loads(letter["raw"])
    assert (raw["msgid"], raw["sensor"]) == (63, "nobody knows me")


def _longitude(text: str) -> str:
    return str(json.loads(text.split(",", 1)[1])["e"][1]["v"])


@both
def test_stats_puts_every_observation_of_sensors_that_nobody_knows_aside(
    run: Runner, state: Path, fused: bool
) -> None:
    known = replace(CITY, metadata={"a": "hall,solar"})
    lines = [line("a", [1.0, 2.0, 3.0, 4.0, 5.0]), line("b", [1.0, 2.0, 3.0, 4.0, 5.0]), "nonsense"]
    made = run("stats", [line_table(lines)], city=known, fused=fused).payloads()
    assert {row["msgid"] for row in made} == {0}
    assert len(made) == 10
    letters = dead_letters(state, "stats", "read" if fused else "bloom_filter")
    strangers = [letter for letter in letters if "SenML" not in letter["dead_letter"]]
    assert [letter["dead_letter"] for letter in strangers] == ["no sensor of this name is known: b"] * 5
    told = [json.loads(letter["raw"]) for letter in strangers]
    assert sorted((row["msgid"], row["name"]) for row in told) == [
        (1, n) for n in sorted(reference.QUANTITIES)
    ]
    assert len(letters) == (6 if fused else 5)
