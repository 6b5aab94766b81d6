"""The four things a pipeline is made of. A node is known by its name, unique in its pipeline."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.pipeline.endpoints import SinkSpec, SourceSpec

if TYPE_CHECKING:
    from penstock.pipeline.sinks import Kafka

OperatorKind = Literal["operator", "window", "parse", "union", "join", "each_turn", "to_topic", "from_topic"]

# Names become directories and parts of dotted names, so that no dot and no slash may be in them.
_NAME = re.compile(r"[^\W_](?:[\w -]{0,78}[\w-])?")


@dataclass(frozen=True, slots=True)
class Window:
    """A window's settings. `slide_seconds` equals `size_seconds` where windows do not overlap."""

    on: str
    size_seconds: float
    slide_seconds: float
    late_seconds: float
    by: tuple[str, ...]
    aggregates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A place rows come from."""

    name: str
    spec: SourceSpec

    @property
    def inputs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Loop:
    """Rows from further down that come in again; `schema` serves while none has come round yet."""

    name: str
    schema: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Operator:
    """A function of as many DataFrames as it has `inputs` (names of nodes), to one DataFrame.

    `settings` are the pairs, beside the names, by which one version of a pipeline is told from another.
    `turn_schema` (DDL) makes it one that is called at every turn, and says what it then returns. With less
    than `block` rows it makes nothing. One that `forgets` bounds its state without a watermark. What one with
    a `topic` makes goes through that to the operator behind it.
    """

    name: str
    kind: OperatorKind
    inputs: tuple[str, ...]
    function: Callable[..., Any]
    parallelism: int = 1
    fuse: bool = True
    dead_letters: bool = False
    stateful: bool = False
    watermark: str | None = None
    window: Window | None = None
    settings: tuple[tuple[str, str], ...] = ()
    turn_schema: str | None = None
    block: int = 0
    forgets: bool = False
    topic: Kafka | None = None

    @property
    def keeps_dead_letters(self) -> bool:
        """Bad rows or, at a window, late ones are put aside by this operator."""
        return self.dead_letters or self.window is not None


@dataclass(frozen=True, slots=True)
class Sink:
    """A place rows go to, within `latency_seconds` of their arrival at the source; None: no target."""

    name: str
    input: str
    spec: SinkSpec
    latency_seconds: float | None

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.input,)


Node = Source | Loop | Operator | Sink


def kind_of(node: Node) -> str:
    """What a message calls the node."""
    return node.kind if isinstance(node, Operator) else type(node).__name__.lower()


def name_mistake(name: object) -> str | None:
    """What is wrong with the name of a pipeline or of a node, if anything."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return None
    return (
        "a name must begin with a letter or digit and have letters, digits, spaces, '-' and '_' only, "
        f"at most 80, got {name!r}: queues and checkpoints are named after it"
    )
