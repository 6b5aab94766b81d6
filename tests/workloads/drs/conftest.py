"""Engines and spools of the Spark tests serve here too."""

from tests.spark.conftest import engine, spool, state

__all__ = ["engine", "spool", "state"]
