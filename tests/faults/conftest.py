"""The session, engines and spools of the Spark tests serve here too."""

from tests.spark.conftest import engine, spark, spool, state

__all__ = ["engine", "spark", "spool", "state"]
