"""Access control: only rows whose subject allows this consumer this purpose, at their time of day, pass."""

from __future__ import annotations

import zoneinfo
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.operators.java_functions import called
from penstock.operators.privacy.policies import PolicyTable
from penstock.operators.transform import Transform
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def access_control(
    policies: PolicyTable,
    *,
    consumer: str,
    purpose: str,
    subject: str = "subject",
    at: str | None = "at",
    zone: str = "UTC",
) -> Transform:
    """Drops every row that no policy allows.

    Denied is also a row without a subject, and one without a time where the policy has hours. The time of
    day is that of the column `at` in `zone`; with `at=None` no policy with hours holds. A table that is
    missing or broken fails the turn: nothing passes.
    """
    if zone not in zoneinfo.available_timezones():
        raise PenstockError(
            f'zone must be the name of a time zone ("Europe/Zurich"), got {zone!r}: '
            "it is not known what time of day it is there"
        )

    def permitted(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        session = rows.sparkSession
        nanos = round(policies.refresh_seconds * 1e9)
        rule = jvm(session).penstock.AccessRule(str(policies.path), nanos, consumer, purpose, zone)
        moment = F.lit(None).cast("long") if at is None else F.unix_micros(F.col(at).cast("timestamp"))
        allowed = called(session, rule, "BOOLEAN", F.col(subject).cast("string"), moment)
        return rows.filter(allowed)

    return permitted
