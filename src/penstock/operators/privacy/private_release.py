"""The two operators of a differentially private release: what each subject gives, and what is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.operators.privacy.budget import Budget, Values
from penstock.operators.privacy.questions import EXHAUSTED, GRID, ONE_GROUP, Question, Sum, answers
from penstock.operators.privacy.subjects import one_subject
from penstock.pipeline.stream import Stream
from penstock.pipeline.windows import interval

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class PrivateRelease:
    """A pair of operators: `contributions` keeps what subjects give to a window, `release` makes it public.

    `add_to` declares both. By themselves: `contributions` with stateful=True and watermark=`on`, then
    `each_turn(name, private.release, schema=private.schema)`.
    """

    question: Question
    budget: Budget
    on: str
    subject: str
    late_seconds: float

    def add_to(self, stream: Stream, name: str) -> Stream:
        """The released rows, as an operator `name` behind one of that name and `_contributions`."""
        kept = stream.operator(f"{name}_contributions", self.contributions, stateful=True, watermark=self.on)
        return kept.each_turn(name, self.release, schema=self.schema)

    @property
    def schema(self) -> str:
        """What `release` gives: `window`, the group, the value; `reason` where there is none."""
        group = "" if self.question.by is None else f"`{self.question.by}` STRING, "
        value = "BIGINT" if self.question.kind == "count" else "DOUBLE"
        return f"window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, {group}value {value}, reason STRING"

    def contributions(self, rows: DataFrame) -> DataFrame:
        """One row for each window, so that no turn can see a part of it: what each subject has in each group.

        Any row makes its window be released, one without a subject too.
        """
        from pyspark.sql import functions as F

        asked, low, high = self.question, *map(F.lit, self.question.bounds)
        group = F.lit(ONE_GROUP[0]) if asked.by is None else F.col(asked.by).cast("string")
        value = F.lit(0.0) if asked.column is None else F.col(asked.column).cast("double")
        known = F.col("subject").isNotNull() & F.col("group").isin(*asked.groups)
        counts = known & F.col("value").isNotNull() & ~F.isnan("value")
        timed = rows.withWatermark(self.on, interval(self.late_seconds)).select(
            self.on, group.alias("group"), one_subject(self.subject).alias("subject"), value.alias("value")
        )
        # A row that counts for nobody keeps its window alone: all of these are one group.
        parts = [F.when(counts, F.col(each)).alias(each) for each in ("group", "subject", "value")]
        clipped = F.sum(F.greatest(low, F.least(high, F.col("value")))).alias("total")
        window = F.window(self.on, interval(asked.window_seconds))
        rows_of = F.count(F.lit(1)).alias("n")
        each = timed.select(self.on, *parts).groupBy(window, "subject", "group").agg(rows_of, clipped)
        given = F.struct("subject", (-F.col("n")).alias("minus_n"), "group", "total")
        listed = F.collect_list(F.when(F.col("subject").isNotNull(), given))
        # In the order of subjects, and of each the groups with most rows first: `_bounded` relies on it.
        return each.groupBy("window").agg(F.sort_array(listed).alias("contributions"))

    def release(self, rows: DataFrame) -> DataFrame:
        """The noised values of each window of the turn."""
        from pyspark.sql import functions as F

        # The number of the row tells a window that comes twice, which would double its subjects.
        number = F.monotonically_increasing_id().alias("number")
        start = F.unix_micros("window.start").alias("start")
        windows = rows.select(number, start, "contributions")
        # Outer: a window without subjects is released too.
        given = windows.select("number", "start", F.explode_outer(self._bounded()).alias("given"))
        each = given.select("number", "start", "given.*")
        of_all = _Totals.of(each.groupBy("number", "start", "group").agg(*self._totals()))

        def sums(paid: Mapping[int, frozenset[str]]) -> Mapping[int, Mapping[str, Sum]]:
            if all(of_all.subjects[start] <= paid[start] for start in paid):
                return of_all.sums
            payers = each.join(_payers(rows, paid), ["start", "subject"], "left_semi")
            return _Totals.of(payers.groupBy("number", "start", "group").agg(*self._totals())).sums

        return self._published(rows, answers(self.budget, self.question, of_all.subjects, sums))

    def _bounded(self) -> Column:
        """The contributions without the groups that a subject has beyond those it may have."""
        from pyspark.sql import functions as F

        most, given = self.question.groups_each, F.col("contributions")

        def counts(one: Column, at: Column) -> Column:
            before = F.get(given, at - most)
            return (at < most) | (before["subject"] != one["subject"])

        return F.filter(given, counts)

    def _totals(self) -> tuple[Column, Column, Column]:
        """Rows, steps and subjects; a subject with too many rows counts as that many of its mean."""
        from pyspark.sql import functions as F

        asked = self.question
        n = -F.col("minus_n")
        rows = F.least(n, F.lit(asked.rows).cast("long"))
        steps = F.round((F.col("total") / n - asked.centre) * rows / asked.step)
        most = float(asked.rows * GRID)
        bounded = F.greatest(F.lit(-most), F.least(F.lit(most), steps)).cast("long")
        who = F.collect_set("subject").alias("subjects")
        return F.sum(rows).alias("rows"), F.sum(bounded).alias("steps"), who

    def _published(self, rows: DataFrame, values: Mapping[int, Values]) -> DataFrame:
        from pyspark.sql import functions as F

        asked = self.question
        kind = pa.int64() if asked.kind == "count" else pa.float64()
        cells = [
            (start, group, value)
            for start, each in values.items()
            for group, value in zip(asked.groups, each, strict=True)
        ]
        starts, groups, found = zip(*cells, strict=True) if cells else ((), (), ())
        columns = [pa.array(starts, pa.int64()), pa.array(groups, pa.string()), pa.array(found, kind)]
        made = rows.sparkSession.createDataFrame(pa.table(columns, ["start", "group", "value"]))
        ends = F.timestamp_micros(F.col("start") + F.lit(round(asked.window_seconds * 1e6)))
        window = F.struct(F.timestamp_micros("start").alias("start"), ends.alias("end")).alias("window")
        group = [] if asked.by is None else [F.col("group").alias(asked.by)]
        reason = F.when(F.col("value").isNull(), F.lit(EXHAUSTED)).alias("reason")
        return made.select(window, *group, "value", reason)


@dataclass(frozen=True)
class _Totals:
    """Of each window, by its start: who contributes, and the sums of its groups."""

    subjects: Mapping[int, frozenset[str]]
    sums: Mapping[int, Mapping[str, Sum]]

    @classmethod
    def of(cls, frame: DataFrame) -> _Totals:
        subjects: dict[int, frozenset[str]] = {}
        sums: dict[int, dict[str, Sum]] = {}
        numbers: dict[int, int] = {}
        for row in sorted(frame.toArrow().to_pylist(), key=lambda row: int(row["start"])):
            start = row["start"]
            if numbers.setdefault(start, row["number"]) != row["number"]:
                raise PenstockError(
                    "a window must come once, with all its contributions, got one twice: "
                    "its subjects could count twice, so nothing is released"
                )
            subjects[start] = subjects.get(start, frozenset()).union(row["subjects"])
            of_window = sums.setdefault(start, {})
            if row["group"] is not None:
                of_window[row["group"]] = Sum(row["rows"], row["steps"])
        return cls(subjects, sums)


def _payers(rows: DataFrame, paid: Mapping[int, frozenset[str]]) -> DataFrame:
    from pyspark.sql import functions as F

    pairs = [(start, subject) for start, subjects in paid.items() for subject in sorted(subjects)]
    starts, subjects = zip(*pairs, strict=True)
    columns = [pa.array(starts, pa.int64()), pa.array(subjects, pa.string())]
    return F.broadcast(rows.sparkSession.createDataFrame(pa.table(columns, ["start", "subject"])))
