"""The operator at a stage's end that is called at every turn, and may run jobs of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.pipeline.nodes import Operator
from penstock.spark.jvm import nullable, schema_from_ddl
from penstock.stages.build import OperatorError
from penstock.stages.stage import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class EachTurn:
    """Calls the operator with the rows of a turn, and holds it to the columns it was declared with."""

    pipeline: str
    operator: Operator
    schema: StructType

    @classmethod
    def of(cls, stage: Stage) -> EachTurn:
        assert stage.at_turn is not None
        assert stage.at_turn.turn_schema is not None
        return cls(stage.pipeline, stage.at_turn, nullable(schema_from_ddl(stage.at_turn.turn_schema)))

    def apply(self, rows: DataFrame) -> DataFrame:
        """The operator's own rows, their columns in the order declared."""
        made = self._call(rows)
        if not hasattr(made, "unionByName"):
            raise self._error(f"must return a DataFrame, got {type(made).__name__}")
        came, wanted = _columns(made.schema), _columns(self.schema)
        if came != wanted:
            raise self._error(f"must return the columns {_listed(wanted)}, got {_listed(came)}")
        # A plan more is some milliseconds more.
        return made if made.schema.names == self.schema.names else made.select(*self.schema.names)

    def _call(self, rows: DataFrame) -> DataFrame:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return self.operator.function(rows)  # type: ignore[no-any-return]
        except (Py4JError, PySparkException):
            # A job that failed: an operator before this one may be the cause, which blame finds out.
            raise
        except Exception as error:
            raise self._error(f"raised {type(error).__name__}: {error}") from error

    def _error(self, failure: str) -> OperatorError:
        return OperatorError(self.pipeline, self.operator.name, failure)


def _columns(schema: StructType) -> dict[str, str]:
    return {each.name: each.dataType.simpleString() for each in schema.fields}


def _listed(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items()) or "none"
