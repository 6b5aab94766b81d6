"""What Spark's own plan of a stage says about it: state, watermark, source."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.spark.jvm import analysed_plan, frame_of, java_session, jvm
from penstock.spark.stage_line import EventTime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark's isStatefulOperation misses deduplication and limits, so what is known to keep nothing is
# listed, and everything else is treated as stateful.
STATELESS = frozenset(
    (
        *("Project", "Filter", "SubqueryAlias", "View", "Union", "Generate", "Expand", "Sample", "Subquery"),
        *("LocalRelation", "LogicalRelation", "Range", "OneRowRelation", "InMemoryRelation"),
        *("StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation"),
        *("DataSourceV2Relation", "StreamingDataSourceV2Relation", "CollectMetrics", "EventTimeWatermark"),
        *("Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint"),
        *("DeserializeToObject", "SerializeFromObject", "MapElements", "MapPartitions", "TypedFilter"),
        *("MapInPandas", "MapInArrow", "PythonMapInArrow", "BatchEvalPython", "ArrowEvalPython"),
        *("CTERelationDef", "CTERelationRef", "WithCTE"),
    )
)
STREAMING_LEAVES = frozenset(("StreamingRelation", "StreamingRelationV2", "StreamingDataSourceV2Relation"))


@dataclass(frozen=True)
class Node:
    """A node of a logical plan: its class without the package, its fields, its children."""

    kind: str
    fields: dict[str, Any]
    children: tuple["Node", ...]

    @property
    def streams(self) -> bool:
        return self.kind in STREAMING_LEAVES or any(child.streams for child in self.children)


@dataclass(frozen=True)
class StreamPlan:
    """What Penstock reads from the plan of a streaming DataFrame."""

    stateful: tuple[str, ...]
    event_time: EventTime | None
    """The one watermark of the plan, on a column that comes from the source as it is, and its window."""
    sources: tuple[str, ...]
    rate_rows_per_second: int = 0
    capped: bool = False
    """Whether the source itself limits its batches, so that one may leave files behind."""
    copies: int = 1
    """How many rows are made of one, for windows that overlap."""

    @property
    def is_stateful(self) -> bool:
        return bool(self.stateful)


def read_plan(frame: "DataFrame", *, driven: bool = False, queues: int = 1) -> StreamPlan:
    """The plan of `frame`, which must be a streaming DataFrame; `driven`: its watermark will be set by us.

    Of several `queues` one may have said nothing yet, for which only Spark's own watermarks wait.
    """
    analyzed = analysed_plan(frame)
    probe = jvm(frame.sparkSession).penstock.PlanProbe
    root = parse_plan(analyzed.toJSON())
    sources = tuple(_source_names(root))
    rate = probe.sourceOption(analyzed, "rate", "rowsPerSecond") if sources == ("rate",) else ""
    stateful = tuple(stateful_nodes(root))
    # Pairs leave as they are found, with times that lie behind: only what is made of them has one frontier.
    several = queues == 1 and stateful[:1] == ("Aggregate",)
    found = str(probe.soleWatermark(analyzed, driven, several))
    delay, _, column = found.partition(" ")
    sole = None
    if found and _follows_one_watermark(stateful, bool(probe.joinsAtATime(analyzed))):
        window = [float(micros) / 1e6 for micros in str(probe.window(analyzed)).split()]
        size, slide, offset = window or (None, None, 0.0)
        sole = EventTime(column, float(delay) / 1000, size, slide, offset or 0.0)
    caps = ("maxFilesPerTrigger", "maxBytesPerTrigger")
    capped = any(probe.sourceOption(analyzed, name, cap) for name in sources for cap in caps)
    return StreamPlan(stateful, sole, sources, int(rate or (sources == ("rate",))), capped, copies(root))


def source_options(frame: "DataFrame") -> dict[str, str]:
    """The options that its one source was given; they may hold secrets."""
    return dict(jvm(frame.sparkSession).penstock.PlanProbe.sourceOptions(analysed_plan(frame)))


def _follows_one_watermark(stateful: tuple[str, ...], joins_at_a_time: bool) -> bool:
    """Whether all states of a plan close with the watermark of its input, and it is ours to set.

    Aggregations in a row pass it on as it is; joins hold it back, except those of rows of the same time. A
    deduplication within the watermark takes the lateness for how long it remembers a row.
    """
    passing = {"Aggregate", "Join"} if joins_at_a_time else {"Aggregate"}
    return set(stateful) <= passing or (len(stateful) == 1 and stateful != ("DeduplicateWithinWatermark",))


def driven_by_us(frame: "DataFrame", slots: int) -> "DataFrame":
    """The same with a watermark that only moves when it is told to: Spark's own is that of the source which
    is furthest, and rows of the others would be late. In one task where there is one slot."""
    session = frame.sparkSession
    plan = jvm(session).penstock.PlanProbe.withoutWatermarkOfItsOwn(analysed_plan(frame), slots == 1)
    made = jvm(session).org.apache.spark.sql.classic.Dataset.ofRows(java_session(session), plan)
    return frame_of(made, session)


def parse_plan(text: str) -> Node:
    """A tree from Spark's JSON, which lists the nodes in pre-order, each with its number of children."""
    entries = iter(json.loads(text))

    def read() -> Node:
        entry = next(entries)
        kind = entry["class"].rsplit(".", 1)[-1]
        return Node(kind, entry, tuple(read() for _ in range(entry["num-children"])))

    return read()


def stateful_nodes(node: Node) -> list[str]:
    """The kinds of nodes that keep state between batches, from the top down."""
    found = [kind for child in node.children for kind in stateful_nodes(child)]
    if not node.streams or node.kind in STATELESS:
        return found
    if node.kind == "Join" and sum(child.streams for child in node.children) < 2:
        return found
    return [node.kind, *found]


def copies(node: Node) -> int:
    """The most rows that a plan makes of one of its input: one for each window it falls into."""
    own = len(node.fields["projections"]) if node.kind == "Expand" else 1
    return own * max((copies(child) for child in node.children), default=1)


def _source_names(node: Node) -> list[str]:
    own = [str(node.fields.get("sourceName", ""))] if node.kind in STREAMING_LEAVES else []
    return own + [name for child in node.children for name in _source_names(child)]
