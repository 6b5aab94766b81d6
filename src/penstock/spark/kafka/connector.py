"""The way to our classes over Spark's Kafka connector, in the JVM of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.spark.jvm import jvm
from penstock.spark.kafka.jars import CONNECTOR, NotInstalled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def connector(session: SparkSession) -> Any:
    """The package `penstock.kafka`; refused, with what to do, where the session does not have it."""
    from py4j.java_gateway import JavaClass

    found = jvm(session).penstock.kafka
    if isinstance(found.Topics, JavaClass):
        return found
    if not CONNECTOR.is_installed:
        raise NotInstalled(CONNECTOR)
    raise PenstockError(
        "a session must have the jars of 'kafka' on its class path, and was started without them: "
        "start the program again, with a session of build_session() or with "
        "`penstock.spark.kafka.jars.class_path()` in spark.jars"
    )


def java_map(session: SparkSession, settings: dict[str, str]) -> Any:
    """The same as a map of the JVM's."""
    made = jvm(session).java.util.HashMap()
    for name, value in settings.items():
        made.put(name, value)
    return made
