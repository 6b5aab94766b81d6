"""Who a row is about: one spelling for each subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column


def one_subject(column: str) -> Column:
    """The subject without white space around it, in lower case; null for a blank one.

    Nobody counts twice, or gets a second budget, by being written in another way.
    """
    from pyspark.sql import functions as F

    text = F.lower(F.regexp_replace(F.col(column).cast("string"), r"(?U)^\s+|\s+$", ""))
    return F.when(F.length(text) > 0, text)
