from __future__ import annotations

import base64
import json
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.operators.privacy.rings import key, key_file, keys_of, opened, ring, sealed, text, traces_of
from tests.spark.conftest import eventually

from penstock.errors import PenstockError
from penstock.operators.privacy import Keys, encrypt
from penstock.operators.privacy.key_handover import KeysError
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

spark_test = pytest.mark.spark
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def said(keys: Keys, spark: SparkSession) -> str:
    """What is said of keys that cannot be used; none of them may stand in it."""
    with pytest.raises(KeysError) as refused:
        keys.place(spark)
    assert [id for id in ("a", "b") if traces_of(id, str(refused.value).encode())] == []
    return str(refused.value)


@spark_test
def test_the_same_ring_comes_from_a_variable_a_file_and_a_function(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_SAME", ring("a", "b"))
    places = [
        Keys.from_env("PENSTOCK_TEST_SAME"),
        Keys.from_file(key_file(tmp_path, ring("a", "b"))),
        Keys.from_callable(lambda: json.loads(ring("a", "b"))),
        Keys.from_callable(lambda: {"current": "b", "keys": {"a": key("a"), "b": key("b")}}),
    ]
    for encrypting in places:
        value = sealed(spark, encrypting, "mac", b"00:1b")
        assert [opened(spark, decrypting, "mac", value) for decrypting in places] == [b"00:1b"] * 4


@spark_test
@pytest.mark.parametrize("bare", [text("a"), f" {text('a')}\n", key("a")], ids=["base64", "line", "bytes"])
def test_one_bare_key_is_a_ring_whose_id_is_k1(spark: SparkSession, bare: str | bytes) -> None:
    later = Keys.from_callable(lambda: {"current": "k2", "keys": {"k1": key("a"), "k2": key("b")}})
    value = sealed(spark, Keys.from_callable(lambda: bare), "mac", b"00:1b")
    assert base64.b64decode(value)[:4] == b"\1\2k1"
    assert opened(spark, later, "mac", value) == b"00:1b"


RING = "keys of a function: "
WRONG: dict[str, tuple[str, str]] = {
    "no JSON": (
        '{"current": ' + text("a"),
        "must be a JSON object or one key of 32 bytes in base64, but is no JSON",
    ),
    "short": (text("a")[:40], "key k1 must be 32 bytes in base64, but has 30 bytes"),
    "no base64": (text("a") + "!", "key k1 must be 32 bytes in base64, but is no base64"),
    "none": ('{"current": "a", "keys": {}}', 'a ring must have at least one key under "keys"'),
    "no current": (ring("a", current="x"), '"current" must name one of the keys'),
    "typing error": (
        ring("a", form={}),
        'a ring must have no other fields than "current", "keys" and "from"',
    ),
    "strange id": (
        json.dumps({"current": "a b", "keys": {"a b": text("a")}}),
        "an id of a key must be 1 to 64 letters, digits, '_', '.' or '-'",
    ),
    "twice": (
        json.dumps({"current": "a", "keys": {"a": text("a"), "b": text("a")}}),
        "keys a and b must differ, but are the same",
    ),
    "twice the id": (
        f'{{"current": "a", "keys": {{"a": "{text("a")}", "a": "{text("b")}"}}}}',
        "must be a JSON object or one key of 32 bytes in base64, but is no JSON",
    ),
    "from a list": (ring("a", **{"from": ["a"]}), '"from" must give moments to keys by their ids'),
    "from nobody": (
        ring("a", **{"from": {"x": "2026-12-01T00:00:00Z"}}),
        '"from" must name keys of the ring',
    ),
    "from whenever": (
        ring("a", **{"from": {"a": "tomorrow"}}),
        '"from" of key a must be a moment such as 2026-12-01T00:00:00Z',
    ),
    "from at once": (
        ring("a", "b", **{"from": {"a": "2026-12-01T00:00:00Z", "b": "2026-12-01T00:00:00Z"}}),
        '"from" must not give two keys the same moment',
    ),
}


@spark_test
@pytest.mark.parametrize(("content", "reason"), WRONG.values(), ids=WRONG)
def test_a_ring_that_is_wrong_is_refused_without_a_word_of_it(
    spark: SparkSession, content: str, reason: str
) -> None:
    assert said(Keys.from_callable(lambda: content), spark) == RING + reason


def raises() -> Any:
    raise ValueError(text("a"))


FUNCTIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "raises": (raises, "but it raised ValueError"),
    "list": (lambda: [text("a")], "got another list"),
    "no keys": (lambda: {text("a"): 1}, "got another dict"),
    "objects": (lambda: {"current": "a", "keys": {"a": object()}}, "got values of other types"),
}


@spark_test
@pytest.mark.parametrize(("function", "came"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_that_gives_no_ring_is_refused_without_what_it_gave(
    spark: SparkSession, function: Callable[[], Any], came: str
) -> None:
    rule = 'keys: the function must return {"current": id, "keys": {id: 32 bytes}} or one key of 32 bytes, '
    assert said(Keys.from_callable(function), spark) == f"{rule}{came}: there is nothing to encrypt with"


@spark_test
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o602, 0o610])
def test_a_file_that_is_open_to_others_is_refused_with_what_to_do(
    spark: SparkSession, tmp_path: Path, mode: int
) -> None:
    path = key_file(tmp_path, ring("a"), mode)
    rule = f"keys of file {path}: must be open to its owner alone, but its mode is "
    assert re.fullmatch(rf"{rule}rw-[rwx-]{{6}}: chmod 600 {path}", said(Keys.from_file(path), spark))


@spark_test
def test_a_folder_and_a_file_that_is_not_there_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    folder = f"keys of file {tmp_path}: must be a regular file, but is a folder"
    assert said(Keys.from_file(tmp_path), spark) == folder
    gone = f"keys of file {tmp_path}/x: must be there in every process that needs it, but is not"
    assert said(Keys.from_file(tmp_path / "x"), spark) == gone


@spark_test
def test_a_link_is_followed_and_judged_by_the_file_behind_it(spark: SparkSession, tmp_path: Path) -> None:
    path, link = key_file(tmp_path, ring("a")), tmp_path / "link"
    link.symlink_to(path)
    assert sealed(spark, Keys.from_file(link), "mac", b"x")
    other = tmp_path / "other"
    other.symlink_to(path)
    path.chmod(0o644)
    assert said(Keys.from_file(other), spark).endswith(f"but its mode is rw-r--r--: chmod 600 {path}")


@spark_test
@only_root
def test_a_file_or_link_of_somebody_else_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path, link = key_file(tmp_path, ring("a")), tmp_path / "link"
    link.symlink_to(path)
    os.lchown(link, 12345, -1)
    assert said(Keys.from_file(link), spark).endswith(
        "must belong to root or root, but the link is 12345's: chown it"
    )
    os.chown(path, 12345, -1)
    assert said(Keys.from_file(path), spark).endswith("but it is 12345's: chown it")


@spark_test
def test_keys_that_are_missing_where_a_task_runs_fail_it_with_the_name_of_their_place(
    spark: SparkSession,
) -> None:
    rows = spark.createDataFrame([("00:1b",)], "mac STRING")
    nowhere = "keys of environment variable PENSTOCK_TEST_NOWHERE: must be set in every process that needs it"
    assert said(Keys.from_env("PENSTOCK_TEST_NOWHERE"), spark) == nowhere + ", but is not"

    class Elsewhere(Keys):
        """As on a driver that has no keys: nothing is looked at before a task does."""

        def place(self, session: SparkSession) -> Any:
            return jvm(session).penstock.KeyPlace(self.kind, self.name, 1)

    with pytest.raises(Exception, match=nowhere):
        encrypt("mac", Elsewhere("environment variable", "PENSTOCK_TEST_NOWHERE", 1.0))(rows).collect()
    with pytest.raises(Exception, match="keys of a function: must be in this JVM's memory, but is not"):
        encrypt("mac", Elsewhere("function", "nobody", 1.0))(rows).collect()


def test_a_function_is_refused_where_executors_run_elsewhere() -> None:
    cluster = SimpleNamespace(sc=lambda: SimpleNamespace(isLocal=lambda: False))
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=cluster))
    with pytest.raises(KeysError) as refused:
        keys_of("a").place(session)
    assert str(refused.value) == (
        "keys: from_callable must be used in local mode, got a session with executors of their own: "
        "they could not ask the function. Use from_file or from_env"
    )


@spark_test
def test_a_changed_file_is_taken_up_and_a_broken_one_leaves_the_ring_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = key_file(tmp_path, ring("a"))
    keys = Keys.from_file(path, refresh="10ms")
    encrypt_one = jvm(spark).penstock.Encrypt(keys.place(spark), "mac")

    def current() -> str:
        return base64.b64decode(encrypt_one.call(b"x"))[2:3].decode()

    assert current() == "a"
    key_file(tmp_path, ring("a", "b"))
    eventually(lambda: current() == "b", 5)
    path.write_text('{"current": "a", ')
    assert {current() for _ in range(50)} == {"b"}
    key_file(tmp_path, ring("a", "b", current="a"))
    eventually(lambda: current() == "a", 5)


@spark_test
def test_a_file_that_stays_broken_for_ten_seconds_fails(spark: SparkSession, tmp_path: Path) -> None:
    # The place is put back in time rather than waited for.
    path = key_file(tmp_path, ring("a"))
    place = Keys.from_file(path, refresh="1us").place(spark)
    path.chmod(0o644)
    assert place.problem() is None
    held = place.getClass().getDeclaredField("held")
    held.setAccessible(True)
    since = held.get(place).getClass().getDeclaredField("failingNanos")
    since.setAccessible(True)
    since.setLong(held.get(place), since.getLong(held.get(place)) - 11_000_000_000)
    assert "must be open to its owner alone" in place.problem()
    path.chmod(0o600)
    assert place.problem() is None


@spark_test
def test_a_function_is_asked_again_and_one_that_fails_leaves_the_ring_as_it_was(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[Any] = [ring("a")]

    def ask() -> Any:
        return raises() if answers[-1] is None else answers[-1]

    encrypt_one = jvm(spark).penstock.Encrypt(Keys.from_callable(ask, refresh="10ms").place(spark), "mac")

    def current() -> str:
        return base64.b64decode(encrypt_one.call(b"x"))[2:3].decode()

    assert current() == "a"
    answers.append(ring("a", "b"))
    eventually(lambda: current() == "b", 5)
    answers.append(None)
    eventually(lambda: "it raised ValueError" in caplog.text, 5)
    assert current() == "b"
    assert traces_of("a", caplog.text.encode()) == []
    answers.append(ring("a"))
    eventually(lambda: current() == "a", 5)


@pytest.mark.parametrize("mistake", [text("a"), key("a").hex(), text("a").rstrip("="), "A B", ""])
def test_a_key_in_place_of_a_name_is_refused_and_not_shown(mistake: str) -> None:
    with pytest.raises(KeysError) as refused:
        Keys.from_env(mistake)
    assert str(refused.value) == (
        "keys: from_env must be given the name of a variable, got another text, which is not shown "
        "as it may be a key: nothing can be read there"
    )


def test_a_key_in_place_of_a_path_or_function_is_refused_and_not_shown() -> None:
    hexadecimal = key("a").hex()
    with pytest.raises(KeysError, match="got what looks like a key and is not shown"):
        Keys.from_file(hexadecimal)
    with pytest.raises(KeysError, match="must be given a function, got a str: it could not be asked again"):
        Keys.from_callable(text("a"))  # type: ignore[arg-type]


def test_keys_show_and_pickle_their_place_alone() -> None:
    variable, file = Keys.from_env("RING"), Keys.from_file("/secrets/ring", refresh="5s")
    assert (repr(variable), str(file)) == ("Keys.from_env('RING')", "Keys.from_file('/secrets/ring')")
    assert pickle.loads(pickle.dumps([variable, file])) == [variable, file]
    secret = text("a")
    function = Keys.from_callable(lambda: secret)
    assert f"{function!r} {function}" == "Keys.from_callable(...) Keys.from_callable(...)"
    with pytest.raises(PenstockError, match="a ring of a function must stay in its process"):
        pickle.dumps(function)
