"""From a stage of the graph to one that runs: its plan decides which kind of turn it gets."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.pipeline.nodes import Sink, Window
from penstock.pipeline.sources import Files, Kafka, Rate
from penstock.pipeline.topic_queue import from_records
from penstock.queues.cursor import Consumer
from penstock.queues.disk import Disk
from penstock.queues.journal import Journal
from penstock.queues.position import Position
from penstock.queues.spool import Spool
from penstock.queues.topic import not_known
from penstock.scheduling.progress import SourcesRule
from penstock.spark.adopted import AdoptedQuery
from penstock.spark.backlogs import Backlog, FilesBacklog, RateBacklog, UnknownBacklog
from penstock.spark.checkpoint import Checkpoint
from penstock.spark.direct import DirectStage
from penstock.spark.each_turn import EachTurn
from penstock.spark.end_catalog import Writer, end_for
from penstock.spark.ends import QueueEnd, RemoteEnd
from penstock.spark.grant_books import GrantBooks
from penstock.spark.granted_frames import GrantedFrames, GrantedSource
from penstock.spark.held import HeldParts, HeldStage, Late
from penstock.spark.inputs import QueueInputs, Slices
from penstock.spark.kafka.backlog import KafkaBacklog
from penstock.spark.kafka.jars import CONNECTOR
from penstock.spark.kafka.queue import TopicQueue
from penstock.spark.kafka.source import TopicSource, granted_offsets, stream_of
from penstock.spark.kafka.stage import TopicStage
from penstock.spark.native import NativeParts, NativeStage
from penstock.spark.plans import StreamPlan, driven_by_us, read_plan, source_options
from penstock.spark.query import QuerySettings
from penstock.spark.results import DEAD_LETTER, RAW
from penstock.spark.stage_base import Destination, Place
from penstock.stages.build import build
from penstock.stages.stage import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger("penstock")

ANY_AGE = "36500d"
RunningStage = DirectStage | HeldStage | NativeStage


@dataclass(frozen=True)
class Compiler:
    """Makes running stages, in the order of the graph: a producer's schema is its queue's."""

    spools: Mapping[str, Spool]
    subscribe: Callable[[str, str, Position], Consumer]
    """Gives a stage, by its name, a reader of a queue from a position on."""
    schemas: dict[str, StructType]
    disk: Disk
    sources: dict[str, SourcesRule]
    topics: dict[str, TopicQueue] = field(default_factory=dict)
    """The queues that are topics, and not spools."""

    def compile(self, stage: Stage, place: Place) -> RunningStage:
        """The stage, ready to be scheduled."""
        for folder in (place.folder / "slices", place.folder / "scratch"):
            _empty(folder)
        journal = Journal(place.folder / "journal.json", self.disk)
        if stage.native is not None and isinstance(stage.native.spec, Kafka):
            return self._topics(stage, stage.native.spec, place, journal)
        if stage.inputs[0] in self.topics:
            return self._topics(stage, self.topics[stage.inputs[0]].source, place, journal)
        if stage.native is not None:
            return self._native(stage, place, journal)
        books = GrantBooks(place, stage.inputs)
        streams = books.frames(place, self.schemas, place.slots)
        frame = build(stage, streams)
        self._keep_schema(stage, streams)
        plan = read_plan(frame, driven=True, queues=len(stage.inputs))
        schema = frame.schema if stage.at_turn is None else EachTurn.of(stage).schema
        destination = self._destination(stage, schema, place)
        inputs = self._inputs(stage, place, journal)
        frames = partial(self._frames, stage, place)
        if plan.is_stateful:
            _check_stateless(stage, destination, plan)
            place = replace(place, slots=_slots_of_state(place))
            late = self._late(stage, place)
            stream = partial(self._stream, stage, place, books, plan)
            parts = HeldParts(inputs, books, stream, plan.event_time, late, frames, plan.copies)
            return HeldStage(place, destination, journal, parts)
        books.close()
        return DirectStage(place, destination, journal, inputs, frames)

    def _stream(
        self, stage: Stage, place: Place, books: GrantBooks, plan: StreamPlan, slots: int
    ) -> DataFrame:
        """What the query of a held stage runs on so many slots."""
        frame = build(stage, books.frames(place, self.schemas, slots))
        return driven_by_us(frame, slots) if plan.event_time is not None else frame

    def _native(self, stage: Stage, place: Place, journal: Journal) -> NativeStage:
        assert stage.native is not None
        spec = stage.native.spec
        frame = build(stage, {stage.inputs[0]: native_frame(place.session, spec, place.slots)})
        mode = spec.output_mode if isinstance(spec, AdoptedQuery) else "append"
        settings = QuerySettings(
            place.name, place.folder / "checkpoint", place.slots, mode, store=place.state_store
        )
        plan = read_plan(frame)
        destination = self._destination(stage, frame.schema, place)
        backlog = backlog_of(plan, settings, place.dispatcher.clock(), frame)
        parts = NativeParts(frame, settings, backlog, plan.event_time)
        return NativeStage(place, destination, journal, parts)

    def _topics(self, stage: Stage, spec: Kafka, place: Place, journal: Journal) -> TopicStage:
        [queue], session = stage.inputs, place.session
        read, granted = self._rows_of_topics(queue, spec, session)
        frame = build(stage, {queue: read})
        self._keep_schema(stage, {queue: read})
        plan = read_plan(frame)
        if plan.is_stateful:
            kind, name = ("source", stage.native.name) if stage.native is not None else ("queue", queue)
            raise _with_state(f"{kind} {name!r} of pipeline {stage.pipeline!r}, read by turns,", plan)
        schema = frame.schema if stage.at_turn is None else EachTurn.of(stage).schema
        destination = self._destination(stage, schema, place)
        came = self.topics[queue].handover.seen if queue in self.topics else not_known
        source = TopicSource(spec, stage.name, session, journal.entry.offsets(queue), came)
        inputs = QueueInputs({queue: source.cursor}, place.folder / "slices")
        frames = partial(self._granted, stage, place, {queue: granted})
        return TopicStage(place, destination, journal, inputs, frames, source)

    def _rows_of_topics(
        self, queue: str, spec: Kafka, session: SparkSession
    ) -> tuple[DataFrame, GrantedSource]:
        """As a stream, and as what turns read: records, or the rows that a stage put into them."""
        read, granted = stream_of(session, spec), granted_offsets(session, spec)
        if queue not in self.topics:
            return read, granted
        schema = self.schemas[queue]
        return from_records(read, schema), replace(granted, frame=from_records(granted.frame, schema))

    def _keep_schema(self, stage: Stage, inputs: Mapping[str, DataFrame]) -> None:
        """What the rows that go into a topic are: its records do not say."""
        if stage.output in self.topics:
            self.schemas[stage.output] = build(stage, inputs, before=stage.operators[-1].name).schema

    def _inputs(self, stage: Stage, place: Place, journal: Journal) -> QueueInputs:
        consumers: dict[str, Consumer] = {
            queue: self.subscribe(queue, stage.name, journal.entry.position(queue)) for queue in stage.inputs
        }
        rules = [self.sources[queue] for queue in stage.inputs]
        return QueueInputs(consumers, place.folder / "slices", SourcesRule.of_all(rules))

    def _frames(self, stage: Stage, place: Place, before: str | None = None) -> GrantedFrames:
        sources = {queue: GrantedSource.files(place.session, self.schemas[queue]) for queue in stage.inputs}
        return self._granted(stage, place, sources, before)

    def _granted(
        self, stage: Stage, place: Place, sources: Mapping[str, GrantedSource], before: str | None = None
    ) -> GrantedFrames:
        each_turn = None if before is not None or stage.at_turn is None else EachTurn.of(stage)
        return GrantedFrames(place, sources, lambda inputs: build(stage, inputs, before=before), each_turn)

    def _destination(self, stage: Stage, schema: StructType, place: Place) -> Destination:
        from pyspark.sql.types import StructType

        splits = bool(stage.operators) and stage.operators[-1].dead_letters
        if splits and not {DEAD_LETTER, RAW} <= set(schema.names):
            raise PenstockError(
                f"operator {stage.operators[-1].name!r} of pipeline {stage.pipeline!r} must give the columns "
                f"{DEAD_LETTER!r} and {RAW!r}, got {schema.names}: its dead letters could not be told"
            )
        dead = next(iter(stage.dead_letters.values()), None)
        buried = QueueEnd(self.spools[dead], stage.name) if dead is not None else None
        if stage.sink is not None:
            _check_columns(stage.sink, stage.pipeline, schema)
            end = end_for(stage.sink.spec, Writer(stage.name, place.folder, self.disk, place.session))
            return Destination(end, True, buried, splits)
        assert stage.output is not None
        if stage.output in self.topics:
            return Destination(self.topics[stage.output].end(stage.name, place.session), False)
        kept = [field for field in schema.fields if not (splits and field.name in (DEAD_LETTER, RAW))]
        self.schemas[stage.output] = StructType(kept)
        return Destination(QueueEnd(self.spools[stage.output], stage.name), False, buried, splits)

    def _late(self, stage: Stage, place: Place) -> Late | None:
        """How to find the late rows of a window, if its column is there before it."""
        for operator, window in stage.windows.items():
            frames = self._frames(stage, place, before=operator)
            if window.on in frames.template.columns:
                return partial(_late_of, frames, window)
        return None


def _slots_of_state(place: Place) -> int:
    """As many as its state has pieces; a division that a crash broke off is brought to its end."""
    checkpoint = Checkpoint(place.folder / "checkpoint")
    unfinished = checkpoint.unfinished
    if unfinished is not None:
        log.warning("stage %r: its state is divided into %d pieces, as was begun", place.name, unfinished)
        checkpoint.divide(place.session, unfinished)
    return checkpoint.partitions or place.slots


def _check_stateless(stage: Stage, destination: Destination, plan: StreamPlan) -> None:
    """Refuses state, which was not declared, in one stage with what needs direct turns."""
    if stage.at_turn is not None:
        subject = f"operator {stage.at_turn.name!r} of pipeline {stage.pipeline!r}, called at every turn,"
    elif isinstance(destination.end, RemoteEnd):
        end = f"sink {stage.sink.name!r}" if stage.sink is not None else f"topic of {stage.output!r}"
        subject = f"{end} of pipeline {stage.pipeline!r}, which may be away,"
    else:
        return
    raise _with_state(subject, plan)


def _with_state(subject: str, plan: StreamPlan) -> PenstockError:
    return PenstockError(
        f"{subject} must be in a stage without state, got {', '.join(plan.stateful)}: "
        "put a queue() before it, or declare the operator with state as stateful"
    )


def _check_columns(sink: Sink, pipeline: str, schema: StructType) -> None:
    missing = [name for name in getattr(sink.spec, "columns", ()) if name not in schema.names]
    if missing:
        raise PenstockError(
            f"sink {sink.name!r} of pipeline {pipeline!r} must be given the column {missing[0]!r}, "
            f"got {', '.join(schema.names)}: there would be nothing to write"
        )
    for name, kinds in getattr(sink.spec, "kinds", {}).items():
        if name in schema.names and (kind := schema[name].dataType.simpleString()) not in kinds:
            raise PenstockError(
                f"sink {sink.name!r} of pipeline {pipeline!r} must be given a column {name!r} of type "
                f"{' or '.join(kinds)}, got {kind}: it could not be written"
            )


def _late_of(frames: GrantedFrames, window: Window, slices: Slices, threshold_seconds: float) -> DataFrame:
    return late_rows(frames.over(slices), window, threshold_seconds)


def late_rows(frame: DataFrame, window: Window, threshold_seconds: float) -> DataFrame:
    """The rows whose every window was closed at `threshold_seconds`, as dead letters."""
    from pyspark.sql import functions as F

    slide = round(window.slide_seconds * 1e6)
    size = round(window.size_seconds * 1e6)
    micros = F.unix_micros(F.col(window.on).cast("timestamp"))
    last_end = F.expr("0") + micros - F.pmod(micros, F.lit(slide)) + F.lit(size)
    reason = F.concat(
        F.lit(f"late: {window.on} is "),
        F.col(window.on).cast("string"),
        F.lit(", and its windows are closed"),
    )
    late = frame.filter(last_end <= F.lit(round(threshold_seconds * 1e6)))
    return late.select(reason.alias(DEAD_LETTER), F.to_json(F.struct("*")).alias(RAW))


def native_frame(session: SparkSession, spec: Any, slots: int) -> DataFrame:
    """The streaming DataFrame of a source that Spark reads itself."""
    if isinstance(spec, AdoptedQuery):
        return spec.frame
    if isinstance(spec, Rate):
        reader = session.readStream.format("rate").option("rowsPerSecond", spec.rows_per_second)
        return reader.option("numPartitions", slots).load()
    if isinstance(spec, Files):
        Path(spec.path).mkdir(parents=True, exist_ok=True)
        # Spark passes over files that are a week older than the newest it has seen, and says nothing.
        options = {"maxFileAge": ANY_AGE, **dict(spec.options)}
        files = session.readStream.format(spec.format).schema(spec.schema).options(**options)
        return files.load(str(Path(spec.path).absolute()))
    raise PenstockError(
        f"a source must be one of penstock.sources, got {type(spec).__name__}: the runtime cannot read it"
    )


def backlog_of(plan: StreamPlan, settings: QuerySettings, now: float, frame: DataFrame) -> Backlog:
    """How the backlog of a plan's source is known."""
    if plan.sources == ("kafka",) and CONNECTOR.is_installed:
        known = KafkaBacklog.of(frame.sparkSession, source_options(frame), settings.checkpoint)
        if known is not None:
            return known
    if plan.rate_rows_per_second:
        return RateBacklog(plan.rate_rows_per_second)
    if len(plan.sources) == 1 and not plan.capped and plan.sources[0].startswith("FileSource["):
        folder = plan.sources[0].removeprefix("FileSource[").removesuffix("]").removeprefix("file:")
        if Path(folder).is_dir():
            return FilesBacklog(Path(folder), settings.checkpoint / "sources" / "0")
    return UnknownBacklog(now)


def _empty(folder: Path) -> None:
    """A folder without files: what a crash left there belongs to no turn."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
