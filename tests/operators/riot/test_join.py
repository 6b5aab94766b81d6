from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from tests.operators.riot import reference
from tests.operators.riot.drawn import EACH, assert_each_close, by_case, drawn
from tests.operators.riot.inputs import (
    OBSERVATION_DDL,
    OBSERVATIONS,
    Row,
    chosen,
    frame,
    observed,
    rows_of,
)
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import Kept

from penstock import Pipeline, sources
from penstock.operators import riot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NAMES = ("source", *reference.QUANTITIES)
[ONE] = observed(random.Random(1), 1)
TURNS = 4


def part(msgid: int, name: str, value: float = 1.0, **others: object) -> Row:
    """An observation of a message of one sensor."""
    said = {"value": None, "text": f"id {value}"} if name == "source" else {"value": value, "text": None}
    return {**ONE, "msgid": msgid, "name": name, **said, **others}


def test_messages_are_joined_as_soon_as_all_their_observations_are_there(spark: SparkSession) -> None:
    rows = [part(msgid, name, msgid + at / 8) for msgid in range(60) for at, name in enumerate(NAMES)]
    missing = [row for row in rows if row["msgid"] % 7 or row["name"] != "light"]
    extra = [{**rows[0], "name": "noise", "msgid": msgid} for msgid in range(60)]
    mixed = random.Random(4).sample([*missing, *extra], len(missing) + 60)
    columns = ("msgid", "time", "longitude", "latitude", *NAMES)
    found = rows_of(riot.join_by_message()(frame(spark, mixed)), *columns)
    assert len(found) == 60 - 9
    assert found == chosen(reference.joined(missing), *columns)


def test_an_id_that_begins_anew_or_that_two_gateways_use_is_another_message(spark: SparkSession) -> None:
    others = ({"time": 901}, {"time": 902}, {"sensor": "of another gateway"})
    rows = [part(0, name, 1.0 + at, **other) for at, other in enumerate(others) for name in NAMES]
    made = riot.join_by_message()(frame(spark, random.Random(2).sample(rows, 18))).collect()
    assert sorted((row["time"], row["dust"], row["source"]) for row in made) == [
        (901, 1.0, "id 1.0"),
        (902, 2.0, "id 2.0"),
        (ONE["time"], 3.0, "id 3.0"),
    ]


def test_other_columns_and_names_can_be_joined(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(7, "low", 1.5, None), (7, "who", None, "me"), (8, "low", 2.5, None)],
        "id BIGINT, what STRING, number DOUBLE, words STRING",
    )
    join = riot.join_by_message(
        ["who", "low"], by="id", carry=["id"], name="what", value="number", text="words", texts=["who"]
    )
    assert [tuple(row) for row in join(rows).collect()] == [(7, "me", 1.5)]


copies = st.lists(st.tuples(*[st.sampled_from((0, 1, 2, 2, 3, 3, None))] * len(NAMES)), max_size=3)
"""Of each copy of a message: in which turn each of its observations comes, if it comes."""
messages = st.lists(copies, min_size=1, max_size=3)


def test_a_message_that_comes_n_times_gives_n_rows_however_turns_and_a_restart_cut_it(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    cases = drawn(messages, 80)
    turns: list[list[Row]] = [[] for _ in range(TURNS)]
    for number, case in enumerate(cases):
        for at, several in enumerate(case):
            for copy in several:
                for name, turn in zip(NAMES, copy, strict=True):
                    if turn is not None:
                        turns[turn].append(part(number * EACH + at, name, at + 0.5))
    # Whatever was left behind would show in a message that comes after all the others.
    turns.append([part(number * EACH + at, name, 99.0) for number in range(len(cases)) for at in range(3)
                  for name in NAMES])  # fmt: skip
    source, kept = spool(), Kept()
    for part_of_run in (turns[: TURNS // 2], turns[TURNS // 2 :]):
        pipeline = Pipeline("p")
        rows = pipeline.source("rows", sources.FromSpool(source, OBSERVATION_DDL))
        rows.operator("join", riot.join_by_message(), stateful=True).sink("out", kept.sink)
        runs = engine()
        runs.submit(pipeline)
        for turn in part_of_run:
            source.append(pa.Table.from_pylist(random.Random(5).sample(turn, len(turn)), schema=OBSERVATIONS))
            runs.drain()
        runs.stop()
    columns = ("msgid", *NAMES)
    expected = reference.joined(row for turn in turns for row in turn)
    assert_each_close(
        cases,
        by_case(chosen(kept.rows, *columns), len(cases)),
        by_case(chosen(expected, *columns), len(cases)),
    )
    complete = Counter(row["msgid"] for row in kept.rows)
    for number, case in enumerate(cases):
        for at, several in enumerate(case):
            if all(None not in copy for copy in several):
                assert complete[number * EACH + at] == len(several) + 1
