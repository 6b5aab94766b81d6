from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operators.privacy.rings import key, keys_of, opened, ring, sealed

from penstock.operators.privacy import Keys, decrypt, encrypt
from penstock.operators.privacy.columns import ColumnError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HEADER_BYTES, NONCE_BYTES, TAG_BYTES = 3, 12, 16
A, AB, B = keys_of("a"), keys_of("a", "b"), keys_of("b")
CHANGED = "column mac is not as it was encrypted: changed, cut, or of another column or key"
NO_VALUE = "column mac is no encrypted value"


@settings(max_examples=60, deadline=None)
@given(value=st.binary(max_size=300))
def test_what_is_encrypted_is_decrypted_and_never_looks_the_same_twice(
    spark: SparkSession, value: bytes
) -> None:
    first, second = (sealed(spark, AB, "mac", value) for _ in range(2))
    assert opened(spark, AB, "mac", first) == opened(spark, AB, "mac", second) == value
    assert first != second
    assert len(base64.b64decode(first)) == HEADER_BYTES + NONCE_BYTES + len(value) + TAG_BYTES


def test_spark_decrypts_with_the_key_what_encrypt_made(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    macs = ["00:1b:44:11:3a:b7", "", "größer als gedacht", "x" * 1000]
    made = encrypt("mac", AB)(spark.createDataFrame([(mac,) for mac in macs], "mac STRING"))
    bare = F.substring(F.unbase64("mac"), HEADER_BYTES + 1, 10_000)
    header = b"\1\1b"
    assert {bytes(base64.b64decode(row["mac"]))[:HEADER_BYTES] for row in made.collect()} == {header}
    plain = F.aes_decrypt(bare, F.lit(key("b")), F.lit("GCM"), F.lit("DEFAULT"), F.lit(header + b"mac"))
    assert [row[0] for row in made.select(plain.cast("string")).collect()] == macs


def test_decrypt_reads_what_spark_encrypted_with_the_key(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    header, nonce = b"\1\1a", bytes(range(12))
    rows = spark.createDataFrame([("00:1b:44:11:3a:b7",)], "mac STRING")
    gcm = F.aes_encrypt(
        "mac", F.lit(key("a")), F.lit("GCM"), F.lit("DEFAULT"), F.lit(nonce), F.lit(header + b"mac")
    )
    foreign = rows.select(F.base64(F.concat(F.lit(header), gcm)).alias("mac"))
    assert decrypt("mac", AB, unreadable="null")(foreign).collect() == rows.collect()


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_no_character_can_be_changed(spark: SparkSession, data: st.DataObject) -> None:
    value = sealed(spark, AB, "mac", b"00:1b:44:11:3a:b7"[: data.draw(st.integers(0, 17))])
    at = data.draw(st.integers(0, len(value) - 1))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n -_é"
    other = data.draw(st.sampled_from([each for each in alphabet if each != value[at]]))
    assert isinstance(opened(spark, AB, "mac", value[:at] + other + value[at + 1 :]), str)


def test_other_spellings_of_the_same_bytes_are_refused(spark: SparkSession) -> None:
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    value = sealed(spark, AB, "mac", b"00:1")
    last = value.rstrip("=")[-1]
    spelled = value[:-2] + digits[digits.index(last) + 1] + "="
    assert base64.b64decode(spelled) == base64.b64decode(value)
    assert [opened(spark, AB, "mac", text) for text in (spelled, value.rstrip("="))] == [NO_VALUE] * 2
    assert opened(spark, AB, "mac", value) == b"00:1"


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_text_can_be_cut_or_lengthened(spark: SparkSession, data: st.DataObject) -> None:
    value = sealed(spark, AB, "mac", b"00:1b:44:11:3a:b7")
    begin, end = (data.draw(st.integers(0, len(value))) for _ in range(2))
    cut = value[begin:end]
    if cut != value:
        assert isinstance(opened(spark, AB, "mac", cut), str)
    assert isinstance(opened(spark, AB, "mac", value + data.draw(st.text("A=\n", min_size=1))), str)


@settings(max_examples=80, deadline=None)
@given(text=st.text(max_size=200))
def test_text_that_was_never_encrypted_is_refused_and_nothing_is_made_of_it(
    spark: SparkSession, text: str
) -> None:
    assert isinstance(opened(spark, AB, "mac", text.replace("\0", "")), str)


def test_every_way_round_is_refused_with_its_reason(spark: SparkSession) -> None:
    by_a, by_b = (base64.b64decode(sealed(spark, keys, "mac", b"00:1b")) for keys in (A, B))
    as_text = {name: base64.b64encode(value).decode() for name, value in {
        "tampered": by_a[:-1] + bytes([by_a[-1] ^ 1]),
        "other nonce": by_a[:4] + bytes([by_a[4] ^ 1]) + by_a[5:],
        "cut": by_a[:-1],
        "no tag": by_a[:20],
        "said to be of the old key": by_b[:2] + b"a" + by_b[3:],
        "another version": b"\2" + by_a[1:],
        "an id longer than all": b"\1\x7f" + by_a[2:],
        "no id": b"\1\0" + by_a[3:],
        "a gone key": b"\1\3a\nb" + by_a[3:],
        "empty": b"",
    }.items()}  # fmt: skip
    as_text["another column"] = sealed(spark, A, "MAC", b"00:1b")
    assert {name: opened(spark, AB, "mac", value) for name, value in as_text.items()} == {
        "tampered": CHANGED,
        "other nonce": CHANGED,
        "cut": CHANGED,
        "no tag": CHANGED,
        "said to be of the old key": CHANGED,
        "another version": NO_VALUE,
        "an id longer than all": NO_VALUE,
        "no id": NO_VALUE,
        "a gone key": "column mac needs key a?b, which is not in the ring",
        "empty": NO_VALUE,
        "another column": CHANGED,
    }
    wrong_key = Keys.from_callable(lambda: {"current": "a", "keys": {"a": key("c")}})
    assert opened(spark, wrong_key, "mac", base64.b64encode(by_a).decode()) == CHANGED
    assert opened(spark, A, "mac", base64.b64encode(by_a).decode()) == b"00:1b"


def test_old_values_are_decrypted_while_their_key_is_in_the_ring(spark: SparkSession) -> None:
    old, new = (sealed(spark, keys, "mac", b"00:1b") for keys in (A, AB))
    assert [base64.b64decode(value)[2:3] for value in (old, new)] == [b"a", b"b"]
    assert [opened(spark, AB, "mac", value) for value in (old, new)] == [b"00:1b"] * 2
    gone = "column mac needs key a, which is not in the ring"
    assert [opened(spark, B, "mac", value) for value in (old, new)] == [gone, b"00:1b"]


TYPED = (
    "mac STRING, age INT, size BIGINT, share DOUBLE, part FLOAT, price DECIMAL(9,2), is_in BOOLEAN, "
    "born DATE, at TIMESTAMP, photo BINARY, `a.b` STRING"
)
TYPES = {
    "mac": "STRING", "age": "INT", "size": "BIGINT", "share": "DOUBLE", "part": "FLOAT",
    "price": "DECIMAL(9,2)", "is_in": "BOOLEAN", "born": "DATE", "at": "TIMESTAMP", "photo": "BINARY",
    "a.b": "STRING",
}  # fmt: skip
VALUES: list[tuple[Any, ...]] = [
    (
        "00:1b", -7, 2**62, 0.1 + 0.2, 1.5, Decimal("12.30"), True,
        date(2026, 2, 28), datetime(2026, 10, 25, 1, 30, 0, 1, UTC), b"\xff\0", "dots",
    ),
    ("", 0, 0, float("-inf"), 0.0, Decimal("0.00"), False,
     date(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), b"", ""),
    (None,) * 11,
]  # fmt: skip


@pytest.mark.parametrize("unreadable", ["dead letter", "null"])
def test_types_come_back_and_null_stays_null(spark: SparkSession, unreadable: Any) -> None:
    rows = spark.createDataFrame(VALUES, TYPED)
    hidden = encrypt(list(TYPES), AB)(rows)
    assert {field.dataType.simpleString() for field in hidden.schema} == {"string"}
    shown = decrypt(TYPES, AB, unreadable=unreadable)(hidden)
    if unreadable == "dead letter":
        assert [tuple(row) for row in shown.select("dead_letter", "raw").collect()] == [(None, None)] * 3
        shown = shown.drop("dead_letter", "raw")
    assert shown.schema == rows.schema
    assert shown.collect() == rows.collect()


def test_timestamps_do_not_hang_on_the_sessions_time_zone(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    rows = spark.createDataFrame([(VALUES[0][8],)], "at TIMESTAMP")
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        hidden = spark.createDataFrame(encrypt("at", AB)(rows).collect(), "at STRING")
        spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        shown = decrypt({"at": "TIMESTAMP"}, AB)(hidden).select(F.unix_micros("at")).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    assert shown == rows.select(F.unix_micros("at")).collect()


def test_a_row_with_one_bad_value_is_a_dead_letter_without_what_the_others_hide(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("mac-0", "Ada", 1), ("mac-1", "Bob", 2), (None, "Eve", 3)], "mac STRING, who STRING, n INT"
    )
    [first, second, third] = encrypt(["mac", "who"], AB)(rows).collect()
    moved = spark.createDataFrame(
        [(first["mac"], first["who"], 1), (second["who"], second["who"], 2), (None, third["who"], 3)],
        "mac STRING, who STRING, n INT",
    )
    shown = decrypt(["mac", "who"], AB)(moved).collect()
    raw = json.dumps({"mac": second["who"], "who": second["who"], "n": 2}, separators=(",", ":"))
    assert [tuple(row) for row in shown] == [
        ("mac-0", "Ada", 1, None, None),
        (None, None, 2, CHANGED, raw),
        (None, "Eve", 3, None, None),
    ]
    kept = decrypt(["mac", "who"], AB, unreadable="null")(moved).collect()
    assert [tuple(row) for row in kept] == [("mac-0", "Ada", 1), (None, "Bob", 2), (None, "Eve", 3)]


def test_a_value_of_another_type_is_a_dead_letter_that_does_not_quote_it(spark: SparkSession) -> None:
    hidden = encrypt("age", AB)(spark.createDataFrame([("forty",)], "age STRING"))
    [row] = decrypt({"age": "INT"}, AB)(hidden).collect()
    assert (row["age"], row["dead_letter"]) == (None, "column age was decrypted, but is no INT")
    assert "forty" not in row["raw"]


def test_a_value_that_is_used_twice_is_encrypted_once(spark: SparkSession) -> None:
    rows = spark.range(100).selectExpr("cast(id as string) as mac")
    twice = encrypt("mac", AB)(rows).selectExpr("mac as one", "mac as other", "substring(mac, 9, 1) as digit")
    assert [
        row for row in twice.collect() if row["one"] != row["other"] or row["one"][8] != row["digit"]
    ] == []
    # Moved below, the filter would look at a ciphertext of its own; a digit is not under M in 3 of 4 cases.
    found = twice.where("digit < 'M'").collect()
    assert [row["one"] for row in found if not row["one"][8] < "M"] == []
    assert found


def test_a_plan_run_again_draws_other_nonces_also_for_constants(spark: SparkSession) -> None:
    rows = encrypt("mac", AB)(spark.range(3).selectExpr("'00:1b' as mac"))
    seen = {row["mac"] for _ in range(3) for row in rows.collect()}
    assert len(seen) == 9


def test_columns_that_cannot_be_meant_are_refused(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("x", [1])], "mac STRING, list ARRAY<INT>")
    with pytest.raises(
        ColumnError, match=r"column 'list' must be text, binary, .* got ARRAY<INT>: it has no one text"
    ):
        encrypt(["mac", "list"], A)(rows)
    with pytest.raises(
        ColumnError, match="column 'name' must be there, got mac, list: nothing would be protected"
    ):
        encrypt("name", A)(rows)
    with pytest.raises(
        ColumnError, match="column 'list' must be text, got ARRAY<INT>: encrypt did not make it"
    ):
        decrypt("list", A)(rows)
    for operator in (encrypt, decrypt):
        for columns in ([], ["mac", "mac"]):
            with pytest.raises(ColumnError, match="columns must be one or more, each named once"):
                operator(columns, A)
    with pytest.raises(ColumnError, match="unreadable must be 'dead letter' or 'null', got 'drop'"):
        decrypt("mac", A, unreadable="drop")  # type: ignore[arg-type]


def test_a_bare_ring_is_read_where_rings_are(spark: SparkSession) -> None:
    assert (
        opened(spark, AB, "mac", sealed(spark, Keys.from_callable(lambda: ring("a", "b")), "mac", b"x"))
        == b"x"
    )
