"""A recurrence over the rows of each key: state that a row changes, and what leaves with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.spark.jvm import frame_of, java_session, jvm, nullable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_STATE, _LEAVES, _FORGOTTEN = "__state", "__leaves", "__forgotten"


class Fields:
    """The columns of a row, or of a state, by name: `row.value` or `row["value"]`."""

    def __init__(self, what: str, columns: Mapping[str, Column]):
        self._what = what
        self._columns = columns

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            raise PenstockError(f"{self._what} has no column {name!r}, of {list(self._columns)}")
        return self._columns[name]

    def __getattr__(self, name: str) -> Column:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]


Values = Callable[[Fields, Fields], Mapping[str, Any]]
"""Columns by name, made of a state and a row."""
Condition = Callable[[Fields, Fields], "Column"]


@dataclass(frozen=True)
class Recurrence:
    """What a key remembers, and how a row changes it.

    `start` is the state before a key's first row: Python values or Columns, whose types are the state's.
    `step(state, row)` is the state after a row, and `emit(state, row)`, with that state, the columns that are
    added to the row or replace some of it. Only rows that `emits_if` holds for leave; after one that
    `forgets_if` holds for the key begins anew.
    """

    start: Mapping[str, Any]
    step: Values
    emit: Values
    emits_if: Condition | None = None
    forgets_if: Condition | None = None


def scan(
    rows: DataFrame, recurrence: Recurrence, *, by: str | Sequence[str], order: str | Sequence[str] = ()
) -> DataFrame:
    """What the recurrence makes of the rows, each key by itself; at most one row for each.

    Within a turn the rows of a key come in the order of the columns `order`, between turns as they arrive.
    It runs in Spark's JVM as flatMapGroupsWithState. The state of a key is kept for ever unless forgotten.
    """
    from pyspark.errors import IllegalArgumentException

    keys, sequence = _names(by), _names(order)
    _check_columns(rows, (*keys, *sequence))
    start = _select(_template(rows, rows.schema), recurrence.start)
    state = nullable(start.schema)
    template = _template(rows, _with_state(rows.schema, state))
    step = _step(template, recurrence, state)
    emit = _emit(template, rows.columns, recurrence, state)
    try:
        made = jvm(rows.sparkSession).penstock.Scan.over(
            rows._jdf, keys, sequence, start._jdf, step._jdf, emit._jdf
        )
    except IllegalArgumentException as error:
        raise PenstockError(str(error)) from error
    return frame_of(made, rows.sparkSession)


def _names(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _check_columns(rows: DataFrame, names: Sequence[str]) -> None:
    if missing := [name for name in names if name not in rows.columns]:
        raise PenstockError(
            "a scan must be by columns that its rows have, "
            f"got {', '.join(missing)}: they have {rows.columns}"
        )


def _template(rows: DataFrame, schema: StructType) -> DataFrame:
    session = rows.sparkSession
    java = java_session(session)
    return frame_of(jvm(session).penstock.Scan.template(java, java.parseDataType(schema.json())), session)


def _with_state(rows: StructType, state: StructType) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType([*rows.fields, StructField(_STATE, state)])


def _select(template: DataFrame, columns: Mapping[str, Any]) -> DataFrame:
    return template.select(*[_column(each).alias(name) for name, each in columns.items()])


def _fields(names: Sequence[str], state: StructType) -> tuple[Fields, Fields]:
    from pyspark.sql import functions as F

    kept = {name: F.col(_STATE).getField(name) for name in state.fieldNames()}
    return Fields("the state", kept), Fields("the row", {name: F.col(f"`{name}`") for name in names})


def _step(template: DataFrame, recurrence: Recurrence, state: StructType) -> DataFrame:
    made = recurrence.step(*_fields([name for name in template.columns if name != _STATE], state))
    if set(made) != set(state.fieldNames()):
        raise PenstockError(
            f"a step must give all of the state, {state.fieldNames()}, and nothing else, got {list(made)}"
        )
    typed = {field.name: _column(made[field.name]).cast(field.dataType) for field in state.fields}
    return _select(template, typed)


def _emit(template: DataFrame, names: Sequence[str], recurrence: Recurrence, state: StructType) -> DataFrame:
    from pyspark.sql import functions as F

    kept, row = _fields(names, state)
    yes, no = F.lit(True), F.lit(False)
    leaves = recurrence.emits_if(kept, row) if recurrence.emits_if else yes
    forgotten = recurrence.forgets_if(kept, row) if recurrence.forgets_if else no
    flags = {_LEAVES: F.coalesce(leaves, no), _FORGOTTEN: F.coalesce(forgotten, no)}
    columns = {**flags, **{name: row[name] for name in names}, **recurrence.emit(kept, row)}
    return _select(template, columns)


def _column(value: Any) -> Column:
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    return value if isinstance(value, Column) else F.lit(value)
