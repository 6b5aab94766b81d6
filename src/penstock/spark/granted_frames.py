"""The rows of a grant as DataFrames: planned once, run at every turn over other files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.queues.segment import Slice
from penstock.spark.arrow_files import arrow_schema, read_streams
from penstock.spark.checkpoint import compiling
from penstock.spark.each_turn import EachTurn
from penstock.spark.inputs import Slices, file_lines
from penstock.spark.jvm import analysed_plan, frame_of, java_session, jvm
from penstock.spark.results import Rows
from penstock.spark.stage_base import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Build = Callable[[Mapping[str, "DataFrame"]], "DataFrame"]
Shares = Callable[[tuple[Slice, ...], int], str]
"""What is granted for slices on so many slots, as `grantLines` takes it."""
# Up to so many rows, a job costs more than running its plan in the driver's own thread.
ROWS_WITHOUT_A_JOB = 2_000
BYTES_WITHOUT_A_JOB = 4_000_000
# On a cluster a row's work belongs to the executors: more of it than a job costs is not done by the driver.
SECONDS_WITHOUT_A_JOB = 0.02
ROWS_DEALT = 20_000
"""With more slots than one, so many rows are handed out to tasks one by one."""
UNEVEN = 0.5
"""Of an even share, what the largest file may have for more rows to be shared among tasks as files."""
_TASK = "__task"


@dataclass(frozen=True)
class Layout:
    """In how many tasks rows are worked on, and whether they are handed out to them row by row."""

    slots: int
    dealt: bool = False

    def of(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        if not self.dealt:
            return frame.coalesce(self.slots)
        # Read by one task and dealt in rotation: each of the others has as many, give or take one.
        number = F.monotonically_increasing_id() % self.slots
        numbered = frame.coalesce(1).withColumn(_TASK, number.cast("int"))
        return numbered.repartitionById(self.slots, _TASK).drop(_TASK)


class _Template:
    """The operators applied to the inputs in one layout, and their plan as far as it can be made once."""

    def __init__(
        self, relations: Mapping[str, DataFrame], layout: Layout, build: Build, turns: Any, java: Any
    ):
        self.inputs = {queue: layout.of(frame) for queue, frame in relations.items()}
        self.frame = build(self.inputs)
        self.plan = analysed_plan(self.frame)
        self.random = bool(turns.isRandom(self.plan))
        # Not while a query starts, which changes how the session compiles: this plan is kept.
        with compiling:
            self.planned = turns.once(java, self.plan)


@dataclass(frozen=True)
class GrantedSource:
    """What takes the rows of each turn, by `grantLines`, and the DataFrame over them."""

    granted: Any
    frame: DataFrame
    shares: Shares | None = None
    """How it shares rows among tasks by itself; only a job can read such a source."""

    def grant(self, slices: tuple[Slice, ...], slots: int) -> None:
        """These are the rows of the next turn."""
        self.granted.grantLines(file_lines(slices) if self.shares is None else self.shares(slices, slots))

    @classmethod
    def files(cls, session: SparkSession, schema: StructType) -> GrantedSource:
        """Over Parquet files of that schema."""
        java, granted = java_session(session), jvm(session).penstock.GrantedFiles()
        relation = granted.relation(java, java.parseDataType(schema.json()))
        return cls(granted, frame_of(java.baseRelationToDataFrame(relation), session))


class GrantedFrames:
    """DataFrames over the files of a grant, one for each input; the operators are applied once, to these.

    Each turn only exchanges the files below the plan. Where the plan would be the same for any files, it is
    optimized and made physical once, and a small turn on one slot runs it without a job. With more slots the
    rows of few files are handed out to as many tasks; many files are shared among them as they are.
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
        self._sources = sources
        self._needs_a_task = any(source.shares is not None for source in sources.values())
        self._relations = {queue: source.frame for queue, source in sources.items()}
        self._place = place
        self._build = build
        self._turns = jvm(session).penstock.PlannedTurn
        self._of_rows = jvm(session).org.apache.spark.sql.classic.Dataset.ofRows
        self._templates: dict[Layout, _Template] = {}
        self._slots = min(place.slots, max(place.dispatcher.slots, 1))
        self._now = self._in(Layout(self._slots))

    def _in(self, layout: Layout) -> _Template:
        if layout not in self._templates:
            self._templates[layout] = _Template(self._relations, layout, self._build, self._turns, self._java)
        return self._templates[layout]

    @property
    def template(self) -> DataFrame:
        """What the operators make, whatever the files."""
        return self._now.frame

    def prepare(self, slots: int) -> None:
        """Plans turns on so many slots beforehand."""
        self._in(Layout(slots))
        if slots > 1 and not self._needs_a_task:
            self._in(Layout(slots, dealt=True))

    def over(self, slices: Slices) -> DataFrame:
        """The result of the operators in the plan for these files."""
        self._grant(slices, self._slots)
        return self._frame()

    def _grant(self, slices: Slices, slots: int) -> None:
        dealt = slots > 1 and not self._needs_a_task and _better_dealt(slices, slots)
        self._now = self._in(Layout(slots, dealt))
        for queue, source in self._sources.items():
            source.grant(slices.get(queue, ()), slots)

    def _frame(self, *, small: bool = False) -> DataFrame:
        """`small`: to collect its rows takes no job."""
        now = self._now
        if now.random:
            # Analysis puts the seed in, so that each turn needs its own.
            return self._build(now.inputs)
        if now.planned is None:
            return frame_of(self._of_rows(self._java, now.plan), self._session)
        planned = self._turns.collected if small else self._turns.now
        return frame_of(planned(self._java, now.plan, now.planned), self._session)

    def _here(self) -> pa.Table:
        """The same as an Arrow table, without a job."""
        now = self._now
        self._turns.here(self._java, now.planned, now.plan.schema(), str(self._stream))
        return read_streams(self._stream, self._arrow)

    def _made(self, frame: DataFrame) -> pa.Table:
        """What an operator made, as a table; without a job where it lies on the driver."""
        if self._turns.hereIfLocal(self._java, frame._jdf, str(self._stream)):
            return read_streams(self._stream, arrow_schema(frame))
        return frame.toArrow()

    @cached_property
    def _arrow(self) -> pa.Schema:
        return arrow_schema(self.template)

    @contextmanager
    def turn(self, slices: Slices, slots: int) -> Iterator[Rows]:
        """The stage's result for these files, that of an operator which is called at every turn included."""
        self._grant(slices, slots)
        small = slots == 1 and self._needs_no_job(slices)
        made: list[DataFrame] = []

        def frame() -> DataFrame:
            made.append(self._frame(small=small and self._each_turn is not None))
            return made[-1]

        try:
            if self._each_turn is not None:
                answer = self._each_turn.apply(frame())
                yield Rows(lambda: answer, lambda: self._made(answer)) if small else Rows.of(answer)
            elif small:
                yield Rows(frame, self._here)
            else:
                yield Rows.of(frame())
        finally:
            for each in made:
                self._forget(each)

    def _needs_no_job(self, slices: Slices) -> bool:
        pieces = [piece for taken in slices.values() for piece in taken]
        rows = sum(piece.rows for piece in pieces)
        return (
            self._now.planned is not None
            and not self._needs_a_task
            and rows <= ROWS_WITHOUT_A_JOB
            and sum(piece.bytes for piece in pieces) <= BYTES_WITHOUT_A_JOB
            and (not self._place.on_cluster or self._is_cheap(rows))
        )

    def _is_cheap(self, rows: int) -> bool:
        """Whether so many rows are known to take less than a job costs by itself."""
        profile = self._place.profiles.of(self._place.name)
        if profile is None or not profile.trusted:
            return False
        return rows * profile.row_seconds <= SECONDS_WITHOUT_A_JOB

    def _forget(self, frame: DataFrame) -> None:
        """Drops what was persisted of these rows: the next turn's plan is the same, its rows are not."""
        cache = self._java.sharedState().cacheManager()
        if not cache.isEmpty():
            cache.uncacheQuery(frame._jdf, True)


def _better_dealt(slices: Slices, slots: int) -> bool:
    """Whether so many tasks share rows better than files: few rows, or files of very different sizes."""
    for pieces in slices.values():
        rows = [piece.rows for piece in pieces]
        if 1 < sum(rows) <= ROWS_DEALT or max(rows, default=0) * slots > UNEVEN * sum(rows) > 0:
            return True
    return False
