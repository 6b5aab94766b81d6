from __future__ import annotations

import hmac
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operators.privacy.rings import key, key_file, keys_of, ring
from tests.spark.conftest import eventually

from penstock.operators.privacy import Keys, pseudonymise
from penstock.operators.privacy.columns import ColumnError
from penstock.pipeline.latency import DurationError
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY_MICROS = 86_400_000_000
NO_PERIOD = -(2**63)


def expected(name: str, purpose: str, value: bytes, period: int = NO_PERIOD) -> str:
    """The pseudonym by Python's own HMAC."""
    derived = hmac.digest(key(name), b"penstock pseudonyms 1", "sha256")
    whole = struct.pack(">I", len(purpose.encode())) + purpose.encode() + struct.pack(">q", period) + value
    return hmac.new(derived, whole, "sha256").hexdigest()


def micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def pseudonyms(spark: SparkSession, operator: Any, rows: list[Any], schema: str) -> list[str]:
    return [row["mac"] for row in operator(spark.createDataFrame(rows, schema)).collect()]


def test_a_pseudonym_is_the_hmac_of_purpose_and_value(spark: SparkSession) -> None:
    made = pseudonyms(
        spark, pseudonymise("mac", keys_of("a", "b")), [("00:1b",), ("ä",), ("",), (None,)], "mac STRING"
    )
    assert made == [*(expected("b", "mac", value) for value in (b"00:1b", "ä".encode(), b"")), None]


@settings(max_examples=60, deadline=None)
@given(
    value=st.binary(max_size=80),
    purpose=st.text(max_size=20).filter(lambda text: text.isprintable()),
    at=st.integers(-(2**55), 2**55),
    days=st.integers(1, 400),
)
def test_every_pseudonym_agrees_with_pythons_hmac(
    spark: SparkSession, value: bytes, purpose: str, at: int, days: int
) -> None:
    place = keys_of_a.place(spark)
    function = jvm(spark).penstock.Pseudonym(place, purpose, days * DAY_MICROS, True)
    assert function.call(value, at) == expected("a", purpose, value, at // (days * DAY_MICROS))


keys_of_a = keys_of("a")


def test_a_period_gives_another_pseudonym_from_its_first_moment_on(spark: SparkSession) -> None:
    first = BEGIN - timedelta(microseconds=micros(BEGIN) % (30 * DAY_MICROS))
    times = [first, first + timedelta(days=30, microseconds=-1), first + timedelta(days=30), None]
    made = pseudonyms(
        spark,
        pseudonymise("mac", keys_of("a"), period="30d", at="seen"),
        [("00:1b", at) for at in times],
        "mac STRING, seen TIMESTAMP",
    )
    number = micros(first) // (30 * DAY_MICROS)
    here, next_ = (expected("a", "mac", b"00:1b", number + n) for n in (0, 1))
    assert made == [here, here, next_, None]


def test_purposes_and_keys_keep_pseudonyms_apart_and_one_purpose_joins_them(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("00:1b", "00:1b", "00:1b")], "mac STRING, peer STRING, other STRING")
    for operator in (
        pseudonymise("mac", keys_of("a")),
        pseudonymise("peer", keys_of("a"), purpose="mac"),
        pseudonymise("other", keys_of("a")),
        pseudonymise("other", keys_of("b"), into="later"),
    ):
        rows = operator(rows)
    [row] = rows.collect()
    assert row["mac"] == row["peer"] == expected("a", "mac", b"00:1b")
    assert len({row["mac"], row["other"], row["later"]}) == 3


def test_into_keeps_the_value_and_adds_its_pseudonym(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(7,), (None,)], "id BIGINT")
    made = pseudonymise("id", keys_of("a"), into="who")(rows).collect()
    assert [tuple(row) for row in made] == [(7, expected("a", "id", b"7")), (None, None)]


FROM = {"from": {"a": "2026-01-01T00:00:00Z", "b": "2026-03-01T00:00:00Z"}}


def test_a_key_holds_from_its_stated_moment_of_event_time_whichever_is_current(spark: SparkSession) -> None:
    moments = [
        BEGIN - timedelta(days=9),
        datetime(2026, 2, 28, 23, 59, 59, 999999, UTC),
        datetime(2026, 3, 1),
    ]
    moments[-1] = moments[-1].replace(tzinfo=UTC)
    for current in ("a", "b", "c"):
        made = pseudonyms(
            spark,
            pseudonymise("mac", keys_of("a", "b", "c", current=current, **FROM)),
            [*(("x", at) for at in moments), ("x", None)],
            "mac STRING, at TIMESTAMP",
        )
        assert made == [*(expected(name, "mac", b"x") for name in "aab"), None]


def test_keys_with_moments_need_the_time_of_the_rows(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("x",)], "mac STRING")
    with pytest.raises(Exception, match='keys with "from" need the time of each row'):
        pseudonymise("mac", keys_of("a", "b", **FROM))(rows).collect()


def test_a_ring_with_another_current_key_changes_pseudonyms_without_a_new_plan(
    spark: SparkSession, tmp_path: Path
) -> None:
    keys = Keys.from_file(key_file(tmp_path, ring("a")), refresh="10ms")
    rows = pseudonymise("mac", keys)(spark.createDataFrame([("x",)], "mac STRING"))
    before = rows.collect()
    key_file(tmp_path, ring("a", "b"))
    eventually(lambda: rows.collect() != before, 10)
    assert (before[0]["mac"], rows.collect()[0]["mac"]) == tuple(expected(k, "mac", b"x") for k in "ab")


def test_what_cannot_be_a_pseudonym_is_refused(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("x", ["y"], 7)], "mac STRING, list ARRAY<STRING>, at BIGINT")
    keys = keys_of("a")
    with pytest.raises(ColumnError) as refused:
        pseudonymise("MAC", keys)(rows)
    assert str(refused.value) == (
        "pseudonymise: column 'MAC' must be there, got mac, list, at: nothing would be protected"
    )
    with pytest.raises(ColumnError, match="column 'list' must be text, binary, a number"):
        pseudonymise("list", keys)(rows)
    with pytest.raises(ColumnError, match="column 'at' must be a TIMESTAMP, got BIGINT"):
        pseudonymise("mac", keys, period="1d")(rows)
    with pytest.raises(ColumnError, match="into must name a new column, got 'at', which is there"):
        pseudonymise("mac", keys, into="at")(rows.drop("at").withColumnRenamed("list", "at"))
    with pytest.raises(DurationError, match="period of pseudonyms must be positive, got 0 ms"):
        pseudonymise("mac", keys, period="0s")
