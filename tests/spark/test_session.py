from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from penstock.spark.class_archive import archive_options
from penstock.spark.jvm import jvm
from penstock.spark.session import (
    DRIVER_OPTIONS,
    FILE_MANAGER,
    FILE_SYSTEM,
    prepare_session,
    preset,
    session_warnings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session_with(settings: dict[str, str], cores: int = 2) -> SparkSession:
    """A session as `session_warnings` sees one, without a JVM."""
    fake: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(defaultParallelism=cores),
        conf=SimpleNamespace(get=lambda key, default=None: settings.get(key, default)),
    )
    return cast("SparkSession", fake)


def test_a_session_with_sparks_defaults_is_warned_of_each_setting_that_costs_latency() -> None:
    defaults = {"spark.sql.shuffle.partitions": "200", "spark.sql.adaptive.enabled": "true"}
    warnings = session_warnings(session_with(defaults))
    costly = [key for key, setting in preset(2).items() if setting.cost_without]
    assert [warning.split(" is ")[0] for warning in warnings] == costly
    assert {FILE_MANAGER, FILE_SYSTEM, "spark.sql.shuffle.partitions"} <= set(costly)
    [partitions] = [warning for warning in warnings if warning.startswith("spark.sql.shuffle.partitions")]
    assert partitions == (
        "spark.sql.shuffle.partitions is 200: a task costs about 5 ms, so no more of them than slots "
        "(a stage overrides it by its own); that is Spark's default of 200 tasks costs a second for each "
        "stateful turn. Set it to 2"
    )


def test_a_session_with_the_preset_is_not_warned() -> None:
    ours = {key: setting.value for key, setting in preset(2).items()}
    assert session_warnings(session_with(ours)) == []


def test_a_few_more_partitions_than_cores_are_no_reason_for_a_warning() -> None:
    ours = {key: setting.value for key, setting in preset(2).items()} | {"spark.sql.shuffle.partitions": "8"}
    assert session_warnings(session_with(ours)) == []
    ours["spark.sql.shuffle.partitions"] = "9"
    assert len(session_warnings(session_with(ours))) == 1


def test_every_setting_of_the_preset_has_a_value_and_a_reason() -> None:
    settings = preset(2)
    assert [key for key, setting in settings.items() if not setting.value or not setting.why] == []
    assert next(iter(settings.values())).why != "as above"
    assert settings["spark.sql.shuffle.partitions"].value == "2"
    assert preset(7)["spark.sql.shuffle.partitions"].value == "7"


@pytest.mark.spark
def test_the_session_of_the_preset_has_its_settings_and_needs_no_warning(spark: SparkSession) -> None:
    assert session_warnings(spark) == []
    chosen = {key: setting.value for key, setting in preset(2).items()}
    chosen[DRIVER_OPTIONS] = f"{chosen[DRIVER_OPTIONS]} {archive_options()}".strip()
    assert {key: spark.conf.get(key, None) for key in chosen} == chosen
    assert spark.sparkContext.defaultParallelism == 2


@pytest.mark.spark
def test_local_files_go_through_the_file_system_that_does_not_fork(spark: SparkSession) -> None:
    java: Any = spark
    path = java._jvm.org.apache.hadoop.fs.Path("file:///tmp")
    system = path.getFileSystem(java._jsparkSession.sessionState().newHadoopConf())
    assert system.getClass().getName() == "penstock.QuietLocalFileSystem"


def test_hadoop_settings_are_sent_without_the_files_they_came_from(spark: SparkSession) -> None:
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    before = {name: settings.get(name) for name in ("io.file.buffer.size", "fs.defaultFS")}

    prepare_session(spark)

    assert {name: settings.get(name) for name in before} == before
    # Settings that are read again, as classes add files of their own, would have their sources again.
    assert settings.getPropertySources("io.file.buffer.size") is None


@pytest.mark.spark
def test_the_heap_that_a_large_turn_needed_is_given_back_at_once(spark: SparkSession) -> None:
    bean = jvm(spark).java.lang.management.ManagementFactory.getRuntimeMXBean()
    taken = set(bean.getInputArguments())
    assert {"-XX:MaxHeapFreeRatio=50", "-XX:-ShrinkHeapInSteps", "-XX:TrimNativeHeapInterval=10000"} <= taken
