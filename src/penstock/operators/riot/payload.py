"""What is published: a row's columns as JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.riot.rows import CARRIED, PLACE, QUANTITIES
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_UNITS = {"longitude": "lon", "latitude": "lat", "temperature": "far"}
_TEXTS = ("source", "location", "type")


def as_payload(*columns: str, carry: Sequence[str] = CARRIED) -> Transform:
    """The columns of `carry`, and `payload`: the others named, as one JSON object; nulls are written too."""

    def show(rows: DataFrame) -> DataFrame:
        return rows.select(*carry, _json(columns).alias("payload"))

    return show


def as_payloads(*groups: Sequence[str], carry: Sequence[str] = CARRIED, needs: str = "") -> Transform:
    """As `as_payload`, a row for each group of columns; one that has `needs` only if that is not null."""
    from pyspark.sql import functions as F

    def payload(group: Sequence[str]) -> Column:
        return F.when(F.col(needs).isNotNull(), _json(group)) if needs in group else _json(group)

    def show(rows: DataFrame) -> DataFrame:
        payloads = F.array_compact(F.array(*map(payload, groups)))
        return rows.select(*carry, F.explode(payloads).alias("payload"))

    return show


def published(rows: DataFrame, carry: Sequence[str] = CARRIED) -> DataFrame:
    """Just what is published: the columns of `carry` (number and arrival), and `payload`."""
    return rows.select(*carry, "payload")


def _json(columns: Sequence[str]) -> Column:
    from pyspark.sql import functions as F

    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})


def csv_to_senml(
    texts: Sequence[str] = _TEXTS,
    numbers: Sequence[str] = (*PLACE, *QUANTITIES),
    *,
    time: str = "time",
    carry: Sequence[str] = CARRIED,
) -> Transform:
    """ETL's CsvToSenML: a wide row as SenML in `payload`, in the form that `senml_parse` reads.

    A column that is null has a name and a unit, but no value.
    """
    from pyspark.sql import functions as F

    def entry(name: str) -> Column:
        is_text = name in texts
        unit = "string" if is_text else _UNITS.get(name, "per")
        value = F.col(name).cast("string")
        nothing = F.lit(None).cast("string")
        return F.struct(
            F.lit(unit).alias("u"),
            F.lit(name).alias("n"),
            (nothing if is_text else value).alias("v"),
            (value if is_text else nothing).alias("sv"),
        )

    def write(rows: DataFrame) -> DataFrame:
        entries = F.array(*(entry(name) for name in (*texts[:1], *numbers, *texts[1:])))
        senml = F.to_json(F.struct(entries.alias("e"), F.col(time).alias("bt")))
        return rows.select(*carry, senml.alias("payload"))

    return write
