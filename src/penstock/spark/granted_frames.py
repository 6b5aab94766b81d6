"""The rows of a grant as DataFrames: planned once, run at every turn over other files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.spark.arrow_files import arrow_schema, read_streams
from penstock.spark.each_turn import EachTurn
from penstock.spark.inputs import Slices, file_lines
from penstock.spark.jvm import analysed_plan, frame_of, java_session, jvm
from penstock.spark.results import Rows
from penstock.spark.stage_base import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Build = Callable[[Mapping[str, "DataFrame"]], "DataFrame"]
# Up to so many rows, a job costs more than running its plan in the driver's own thread.
ROWS_WITHOUT_A_JOB = 2_000
BYTES_WITHOUT_A_JOB = 4_000_000


@dataclass(frozen=True)
class GrantedSource:
    """What takes the rows of each turn, by `grantLines`, and the DataFrame over them."""

    granted: Any
    frame: DataFrame
    needs_a_task: bool = False
    """Whether only a job can read it."""

    @classmethod
    def files(cls, session: SparkSession, schema: StructType) -> GrantedSource:
        """Over Parquet files of that schema."""
        java, granted = java_session(session), jvm(session).penstock.GrantedFiles()
        relation = granted.relation(java, java.parseDataType(schema.json()))
        return cls(granted, frame_of(java.baseRelationToDataFrame(relation), session))


class GrantedFrames:
    """DataFrames over the files of a grant, one for each input; the operators are applied once, to these.

    Each turn only exchanges the files below the plan. Where the plan would be the same for any files, it is
    optimized and made physical once, and a small turn runs it without a job.
    """

    def __init__(
        self,
        place: Place,
        sources: Mapping[str, GrantedSource],
        build: Build,
        each_turn: EachTurn | None = None,
    ):
        session = place.session
        self._each_turn = each_turn
        self._stream = place.folder / "scratch" / "turn.arrow"
        self._session = session
        self._java = java_session(session)
        self._needs_a_task = any(source.needs_a_task for source in sources.values())
        self._granted = {queue: source.granted for queue, source in sources.items()}
        inputs = {queue: source.frame.coalesce(place.slots) for queue, source in sources.items()}
        self._slots = place.slots
        self._build = build
        self._inputs = inputs
        self.template = build(inputs)
        self._plan = analysed_plan(self.template)
        self._schema = self._plan.schema()
        self._turns = jvm(session).penstock.PlannedTurn
        self._random = bool(self._turns.isRandom(self._plan))
        self._planned = self._turns.once(self._java, self._plan)
        self._of_rows = jvm(session).org.apache.spark.sql.classic.Dataset.ofRows

    def over(self, slices: Slices) -> DataFrame:
        """The result of the operators in the plan for these files."""
        self._grant(slices)
        return self._frame()

    def _grant(self, slices: Slices) -> None:
        for queue, granted in self._granted.items():
            granted.grantLines(file_lines(slices.get(queue, ())))

    def _frame(self) -> DataFrame:
        if self._random:
            # Analysis puts the seed in, so that each turn needs its own.
            return self._build(self._inputs)
        if self._planned is None:
            return frame_of(self._of_rows(self._java, self._plan), self._session)
        return frame_of(self._turns.now(self._java, self._plan, self._planned), self._session)

    def _here(self) -> pa.Table:
        """The same as an Arrow table, without a job."""
        self._turns.here(self._java, self._planned, self._schema, str(self._stream))
        return read_streams(self._stream, self._arrow)

    @cached_property
    def _arrow(self) -> pa.Schema:
        return arrow_schema(self.template)

    @contextmanager
    def turn(self, slices: Slices) -> Iterator[Rows]:
        """The stage's result for these files, that of an operator which is called at every turn included."""
        self._grant(slices)
        made: list[DataFrame] = []

        def frame() -> DataFrame:
            made.append(self._frame())
            return made[-1]

        try:
            if self._each_turn is not None:
                yield Rows.of(self._each_turn.apply(frame()))
            elif self._needs_no_job(slices):
                yield Rows(frame, self._here)
            else:
                yield Rows.of(frame())
        finally:
            for each in made:
                self._forget(each)

    def _needs_no_job(self, slices: Slices) -> bool:
        pieces = [piece for taken in slices.values() for piece in taken]
        return (
            self._planned is not None
            and self._slots == 1
            and not self._needs_a_task
            and sum(piece.rows for piece in pieces) <= ROWS_WITHOUT_A_JOB
            and sum(piece.bytes for piece in pieces) <= BYTES_WITHOUT_A_JOB
        )

    def _forget(self, frame: DataFrame) -> None:
        """Drops what was persisted of these rows: the next turn's plan is the same, its rows are not."""
        cache = self._java.sharedState().cacheManager()
        if not cache.isEmpty():
            cache.uncacheQuery(frame._jdf, True)
