"""How many rows a second are encrypted."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def encrypt_rows_per_second(session: SparkSession, rows: int, seconds: float) -> float:
    """The rate of `encrypt` over one field of 20 characters, with all cores of the session.

    Rows come from memory and go nowhere; they are encrypted again and again until `seconds` are over.
    """
    from pyspark.sql import functions as F

    from penstock.operators.privacy import Keys, encrypt

    key = secrets.token_bytes(32)
    text = F.format_string("device-%013d", F.col("id"))
    given = session.range(rows, numPartitions=session.sparkContext.defaultParallelism).select(
        text.alias("mac")
    )
    given = given.cache()
    sealed = encrypt("mac", Keys.from_callable(lambda: key))(given)
    try:
        for _ in range(2):  # the cache is filled, and the code compiled
            sealed.write.format("noop").mode("overwrite").save()
        done, begun = 0, time.perf_counter()
        while (spent := time.perf_counter() - begun) < seconds:
            sealed.write.format("noop").mode("overwrite").save()
            done += rows
        return done / spent
    finally:
        given.unpersist()
