"""No key is found where it must not be: plans, checkpoints, output, logs, errors, pickles, tasks."""

from __future__ import annotations

import io
import logging
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.operators.privacy.rings import key, key_file, ring, traces_of
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, dead_letters

from penstock import Pipeline, sources
from penstock.operators.privacy import Keys, decrypt, encrypt, pseudonymise
from penstock.operators.transform import Transform
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
MACS = ["00:1b:44:11:3a:b7", "00:1b:44:11:3a:b8", None]


@pytest.fixture(params=["variable", "file", "function"])
def keys(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keys:
    monkeypatch.setenv("PENSTOCK_TEST_SECRET", ring("a", "b"))
    return {
        "variable": lambda: Keys.from_env("PENSTOCK_TEST_SECRET"),
        "file": lambda: Keys.from_file(key_file(tmp_path, ring("a", "b"))),
        "function": lambda: Keys.from_callable(lambda: ring("a", "b"), refresh="20ms"),
    }[request.param]()


def operators(keys: Keys) -> list[Transform]:
    return [pseudonymise("mac", keys, into="who"), encrypt("mac", keys), decrypt("mac", keys)]


def found(content: bytes | str) -> list[str]:
    content = content.encode() if isinstance(content, str) else content
    return [f"{id}: {form}" for id in ("a", "b") for form in traces_of(id, content)]


def found_below(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [f"{path}: {trace}" for path in files for trace in found(path.read_bytes())]


def test_the_search_finds_a_key_in_every_form() -> None:
    assert found(ring("a")) == ["a: base64"]
    assert found(b"x" + key("a").hex().encode()) == ["a: hexadecimal"]
    assert found(b"x" + key("b") + b"x") == ["b: bytes"]


def test_plans_and_what_is_sent_to_tasks_have_no_key(spark: SparkSession, keys: Keys) -> None:
    rows = spark.createDataFrame([(mac,) for mac in MACS], "mac STRING")
    java = jvm(spark)
    for operator in operators(keys):
        rows = operator(rows)
        shown = io.StringIO()
        with redirect_stdout(shown):
            rows.explain(True)
            rows.explain("formatted")
            rows.explain("codegen")
        execution = rows._jdf.queryExecution()
        plans = [execution.analyzed(), execution.optimizedPlan(), execution.executedPlan()]
        assert found(shown.getvalue() + "".join(plan.toJSON() for plan in plans)) == []
    assert "pseudonymise(" in shown.getvalue()
    place = keys.place(spark)
    seal, hide = java.penstock.Encrypt(place, "mac"), java.penstock.Pseudonym(place, "mac", 0, False)
    assert seal.call(b"x")
    assert hide.call(b"x", None)
    for function in (seal, hide, java.penstock.Decrypt(place, "mac")):
        sent = bytes(java.org.apache.commons.lang3.SerializationUtils.serialize(function))
        assert len(sent) > 100
        assert found(sent) == []


def test_a_ring_cannot_be_serialized_at_all(spark: SparkSession) -> None:
    interfaces = jvm(spark).java.lang.Class.forName("penstock.KeyRing").getInterfaces()
    nested = jvm(spark).java.lang.Class.forName("penstock.KeyRing$Key").getInterfaces()
    assert [len(interfaces), len(nested)] == [0, 0]


def test_checkpoints_and_written_rows_have_no_key(spark: SparkSession, keys: Keys, tmp_path: Path) -> None:
    given, stream = tmp_path / "given", tmp_path / "stream"
    spark.createDataFrame([(mac,) for mac in MACS], "mac STRING").write.parquet(str(given))
    rows = spark.readStream.schema("mac STRING").parquet(str(given))
    for operator in operators(keys)[:2]:
        rows = operator(rows)
    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(stream / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(stream / "written"))
    )
    query.awaitTermination()
    assert found_below(stream) == []
    written = spark.read.parquet(str(stream / "written"))
    assert sorted(str(row["mac"]) for row in decrypt("mac", keys)(written).collect()) == sorted(
        map(str, MACS)
    )


def test_spark_event_log_has_no_key(spark: SparkSession, keys: Keys, tmp_path: Path) -> None:
    java, context = jvm(spark), spark.sparkContext._jsc.sc()
    events = tmp_path / "events"
    events.mkdir()
    conf = context.conf().clone().set("spark.eventLog.compress", "false")
    listener = java.org.apache.spark.scheduler.EventLoggingListener(
        "app",
        java.scala.Option.empty(),
        java.java.net.URI(events.as_uri()),
        conf,
        context.hadoopConfiguration(),
    )
    listener.start()
    context.addSparkListener(listener)
    try:
        rows = spark.createDataFrame([(mac,) for mac in MACS], "mac STRING")
        for operator in operators(keys):
            rows = operator(rows)
        rows.collect()
        context.listenerBus().waitUntilEmpty()
    finally:
        context.removeSparkListener(listener)
        listener.stop()
    assert b"encrypt(" in b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert found_below(events) == []


def test_pythons_logs_have_no_key_also_at_their_most_talkative(
    spark: SparkSession, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "py4j", "py4j.clientserver", "py4j.java_gateway", "pyspark", "penstock"):
        caplog.set_level(logging.DEBUG, logger=name or None)
    rows = spark.createDataFrame([(mac,) for mac in MACS], "mac STRING")
    for operator in operators(keys):
        rows = operator(rows)
    rows.collect()
    assert "KeyPlace" in caplog.text
    assert found(caplog.text) == []


@contextmanager
def talkative_jvm(spark: SparkSession, file: Path) -> Iterator[None]:
    """All that the JVM logs, down to DEBUG and with all plans, goes to the file and nowhere else."""
    log4j = jvm(spark).org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    root = context.getConfiguration().getRootLogger()
    level, usual = root.getLevel(), [root.getAppenders().get(name) for name in root.getAppenders()]
    writer = jvm(spark).java.io.FileWriter(str(file))
    layout = log4j.core.layout.PatternLayout.newBuilder().withPattern("%c %m%n%ex{full}").build()
    told = log4j.core.appender.WriterAppender.createAppender(layout, None, writer, "told", False, False)
    told.start()
    for each in usual:
        root.removeAppender(each.getName())
    root.addAppender(told, None, None)
    root.setLevel(log4j.Level.DEBUG)
    context.updateLoggers()
    spark.conf.set("spark.sql.planChangeLog.level", "DEBUG")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.planChangeLog.level")
        root.removeAppender("told")
        for each in usual:
            root.addAppender(each, None, None)
        root.setLevel(level)
        context.updateLoggers()
        told.stop()


def test_the_logs_of_the_jvm_have_no_key_also_at_their_most_talkative(
    spark: SparkSession, keys: Keys, tmp_path: Path
) -> None:
    file = tmp_path / "jvm.log"
    with talkative_jvm(spark, file):
        rows = spark.createDataFrame([(mac,) for mac in MACS], "mac STRING")
        for operator in operators(keys):
            rows = operator(rows)
        rows.collect()
        # What fails in a task is logged with all that Spark knows of it.
        failing = spark.range(3).selectExpr("CAST(raise_error('no such mac') AS STRING) AS mac")
        with pytest.raises(Exception, match="no such mac"):
            encrypt("mac", keys)(failing).collect()
    told = file.read_text()
    assert "encrypt(" in told
    assert "no such mac" in told
    assert found(told) == []


def test_operators_neither_show_nor_pickle_a_key(keys: Keys) -> None:
    from pyspark.cloudpickle import dumps  # type: ignore[import-untyped]

    for operator in operators(keys):
        assert found(repr(operator) + str(operator)) == []
        with pytest.raises(AttributeError):
            pickle.dumps(operator)
        if "from_callable" in repr(keys):
            with pytest.raises(Exception, match="a ring of a function must stay in its process"):
                dumps(operator)
        else:
            assert found(dumps(operator)) == []


def test_keys_rotate_in_a_running_engine_and_its_state_has_none(
    engine: EngineFactory, spool: SpoolFactory, state: Path, tmp_path: Path, spark: SparkSession
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    folder = tmp_path / "secrets"
    folder.mkdir()
    keys = Keys.from_file(key_file(folder, ring("a")), refresh="10ms")
    readers = Keys.from_callable(lambda: ring("b"))
    pipeline = Pipeline("p")
    pipeline.source("rows", sources.FromSpool(source, "n BIGINT, mac STRING")).operator(
        "hide", encrypt("mac", keys)
    ).operator("show", decrypt("mac", readers), dead_letters=True).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(pa.table({"n": [1, 2], "mac": ["00:1b", None]}))
    runs.drain()
    key_file(folder, ring("a", "b"))
    numbers = iter(range(3, 1000))

    def is_taken_up() -> bool:
        source.append(pa.table({"n": [next(numbers)], "mac": ["00:1c"]}))
        runs.drain()
        return kept.rows[-1] != {"n": 2, "mac": None}

    eventually(is_taken_up)
    runs.stop()
    assert kept.rows[0] == {"n": 2, "mac": None}
    assert {row["mac"] for row in kept.rows[1:]} == {"00:1c"}
    letters = dead_letters(state, "p", "show")
    assert {letter["dead_letter"] for letter in letters} == {
        "column mac needs key a, which is not in the ring"
    }
    assert all("00:1" not in letter["raw"] for letter in letters)
    assert found_below(state) == []
