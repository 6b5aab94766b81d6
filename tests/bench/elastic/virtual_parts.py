"""What the virtual cluster is made of: nodes, stages, their turns and tasks, and what each of them costs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from penstock.measure.profiles import Profiler
from penstock.measure.stage_meter import StageMeter


@dataclass(frozen=True)
class Costs:
    """Processor seconds on a machine of two cores."""

    start: float = 7.0
    """Of a node."""
    cold: float = 0.7
    """Of a stage's first task on a node, beside what any task takes."""
    driver: float = 0.06
    """Of a turn, before its tasks start; half of it again after they ended."""
    task: float = 0.02
    divide: float = 0.8
    """Of state, into other pieces."""
    resume: float = 0.4
    """Of the first turn after that, which starts a query and loads state."""
    cores: float = 2.0
    yielding: bool = True
    """Whether a node that starts takes only what nobody else wants."""


@dataclass
class Node:
    name: str
    region: str
    cores: int
    state: str
    start_left: float = 0.0
    gone_at: float = 0.0
    tasks: int = 0
    knows: set[str] = field(default_factory=set)


@dataclass
class Task:
    replica: int
    node: Node
    processor_left: float
    waits: float
    cold: bool = False
    """The first of its stage on its node: it is not counted as use, as on Spark."""

    @property
    def done(self) -> bool:
        return self.processor_left <= 0.0 and self.waits <= 0.0


@dataclass
class Turn:
    granted_at: float
    sentences: list[tuple[float, int]]
    """When each was due, and its words."""
    before: float
    after: float
    tasks: list[Task]


@dataclass
class Stage:
    name: str
    row_seconds: float
    slots: int
    meter: StageMeter
    profiler: Profiler = field(default_factory=Profiler)
    queue: deque[tuple[float, int]] = field(default_factory=deque)
    turn: Turn | None = None
    paused: bool = False
    resumes: bool = False
    changed_at: float = 0.0
    turns: int = 0

    @property
    def stateful(self) -> bool:
        return self.name.endswith(".count")


@dataclass(frozen=True)
class Use:
    stage: str
    replica: int
    node: str
    run_seconds: float
    cpu_seconds: float = 0.0


def dealt(stage: Stage, sentences: Sequence[tuple[float, int]], chance: Random) -> list[int]:
    """Words of each replica: whole sentences to split, words by their hash to count, else evenly."""
    rows = [0] * stage.slots
    if stage.name.endswith("split"):
        for number, (_, words) in enumerate(sentences):
            rows[number % stage.slots] += words
    elif stage.stateful:
        for _ in range(sum(words for _, words in sentences)):
            rows[hash((chance.randrange(1000), stage.slots)) % stage.slots] += 1
    else:
        total = sum(words for _, words in sentences)
        rows = [total // stage.slots + (number < total % stage.slots) for number in range(stage.slots)]
    return rows


def wanting(turn: Turn) -> int:
    """How many processors a turn could use now."""
    tasks = sum(task.processor_left > 0.0 for task in turn.tasks)
    running = any(not task.done for task in turn.tasks)
    return tasks if turn.before <= 0.0 and running else 1
