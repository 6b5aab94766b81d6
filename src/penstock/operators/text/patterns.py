"""Maximal frequent patterns: sets of words in enough texts, of which no larger set is (DRS, section V-A).

A pattern is written as its words, sorted, with blanks between. Texts come into a window (+1) and leave it
(-1). The detector keeps, for each pattern, how many texts of the window have it, and how many frequent
patterns have just one word more. By the first it is frequent or not. By the second, being 0, it is maximal:
if any larger set is frequent, so is every set between the two. When a pattern becomes frequent, or is so no
longer, the detector tells all those that have one word less, which may be in another task: it sends them to
itself, around a loop. All it keeps are sums, so that what it ends with does not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.operators.scan import Fields, Recurrence, scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Transform = Callable[["DataFrame"], "DataFrame"]
CANDIDATES = "pattern STRING, occurrences INT, larger INT, maximal INT"
"""What comes to the detector and leaves it: by how much a pattern's occurrences change, the frequent patterns
with one word more, and whether it is maximal (1: now, -1: no longer, 0: as before)."""


def candidate_patterns(most_words: int = 5, *, words: str = "words", sign: str = "sign") -> Transform:
    """For each text all non-empty sets of its words; of more than `most_words`, the first by name.

    `words` is an array of strings without blanks; `sign` is 1 for a text that comes, -1 for one that leaves.
    """
    from pyspark.sql import functions as F

    if not 1 <= most_words <= 15:
        raise PenstockError(
            f"texts must have from 1 to 15 words, got {most_words}: of n words there are 2^n - 1 sets"
        )

    def apply(texts: DataFrame) -> DataFrame:
        known = F.filter(F.col(words), lambda word: word.isNotNull() & (word != ""))
        bounded = texts.select(
            F.slice(F.array_sort(F.array_distinct(known)), 1, most_words).alias("words"),
            F.col(sign).cast("int").alias("occurrences"),
        ).filter("size(words) > 0")
        # Bit i of a number says whether word i is in the set.
        sets = F.expr(
            "transform(sequence(1, shiftleft(1, size(words)) - 1), "
            "chosen -> concat_ws(' ', filter(words, (word, i) -> shiftright(chosen, i) & 1 = 1)))"
        )
        zero = F.lit(0)
        return bounded.select(
            F.explode(sets).alias("pattern"), "occurrences", zero.alias("larger"), zero.alias("maximal")
        )

    return apply


def detect_patterns(frequent_at: int) -> Transform:
    """Every change of a pattern that becomes maximal or is so no longer, and what the loop must bring back.

    A pattern is frequent that occurs in `frequent_at` texts or more. Rows with `maximal` 1 or -1 are for a
    reporter; those with `larger` 1 or -1 are for the detector itself. With state: two numbers for each
    pattern in the window.
    """
    from pyspark.sql import functions as F

    if frequent_at < 1:
        raise PenstockError(
            f"patterns must occur once or more to be frequent, got {frequent_at}: every set of words would be"
        )

    def maximal(occurrences: Column, larger: Column) -> Column:
        return (occurrences >= frequent_at) & (larger <= 0)

    def add(state: Fields, row: Fields) -> dict[str, Column]:
        return {
            "occurrences": state.occurrences + row.occurrences,
            "larger": state.larger + row.larger,
        }

    def change(state: Fields, row: Fields) -> dict[str, Column]:
        occurred, larger = state.occurrences - row.occurrences, state.larger - row.larger
        was = maximal(occurred, larger).cast("int")
        before = (occurred >= frequent_at).cast("int")
        return {
            "occurrences": state.occurrences.cast("int"),
            "larger": (state.occurrences >= frequent_at).cast("int") - before,
            "maximal": maximal(state.occurrences, state.larger).cast("int") - was,
        }

    def changes(state: Fields, row: Fields) -> Column:
        made = change(state, row)
        return (made["larger"] != 0) | (made["maximal"] != 0)

    def unknown(state: Fields, row: Fields) -> Column:
        return (state.occurrences == 0) & (state.larger == 0)

    def apply(candidates: DataFrame) -> DataFrame:
        # What the loop brings back of the reporter's rows changes nothing.
        news = candidates.filter("occurrences <> 0 or larger <> 0").filter("maximal = 0")
        recurrence = Recurrence({"occurrences": F.lit(0), "larger": F.lit(0)}, add, change, changes, unknown)
        return _told(scan(news, recurrence, by="pattern"))

    return apply


def _told(changed: DataFrame) -> DataFrame:
    """Of each change the row for the reporter, if any, and those for all patterns with one word less."""
    from pyspark.sql import functions as F

    parts = F.split("pattern", " ")
    smaller = F.transform(parts, lambda one: F.concat_ws(" ", F.array_remove(parts, one)))
    told = F.filter(
        F.transform(smaller, lambda each: _row(each, F.lit(0), F.col("larger"), F.lit(0))),
        lambda each: (each["pattern"] != "") & (each["larger"] != 0),
    )
    reported = F.array(_row(F.col("pattern"), F.col("occurrences"), F.lit(0), F.col("maximal")))
    kept = F.filter(reported, lambda each: each["maximal"] != 0)
    return changed.select(F.explode(F.concat(kept, told)).alias("each")).select("each.*")


def _row(pattern: Column, occurrences: Column, larger: Column, maximal: Column) -> Column:
    from pyspark.sql import functions as F

    return F.struct(
        pattern.alias("pattern"),
        occurrences.alias("occurrences"),
        larger.alias("larger"),
        maximal.alias("maximal"),
    )


def report_patterns() -> Transform:
    """`pattern`, `maximal` (1: now, -1: no longer) and in how many texts of the window it was then."""
    return lambda told: told.filter("maximal <> 0").select("pattern", "maximal", "occurrences")
