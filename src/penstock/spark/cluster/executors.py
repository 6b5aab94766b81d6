"""The executors of an application, as Spark tells of them: who is registered, and who used how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Executor:
    """An executor that takes tasks now; node and region as its worker was labelled, else empty."""

    id: str
    cores: int
    host: str
    node: str = ""
    region: str = ""

    @property
    def alias(self) -> str:
        """Its name where it is a node by itself."""
        return alias(self.id)

    @property
    def place(self) -> str:
        """The node it runs on; itself where workers carry no labels."""
        return self.node or self.alias


def alias(executor: str) -> str:
    """The name of an executor as a node."""
    return f"executor-{executor}"


@dataclass(frozen=True)
class ReplicaUse:
    """What the tasks of one replica of a stage took on one executor, since the engine began to watch.

    `cpu_seconds` is the JVM's own; what a Python operator takes in its process is in `run_seconds` alone.
    Of a task that still runs, the time so far counts, and of that the share of those before it as the JVM's.
    """

    stage: str
    replica: int
    """-1 for tasks before a shuffle, which hand rows to all replicas."""
    executor: str
    node: str
    cpu_seconds: float
    run_seconds: float
    tasks: int


class ExecutorWatch:
    """Listens to the application. Asking it costs a call to the driver's JVM, and no job."""

    def __init__(self, session: SparkSession):
        self._java: Any = jvm(session).penstock.ClusterWatch.of(session.sparkContext._jsc.sc())

    def executors(self) -> tuple[Executor, ...]:
        """Those that take tasks now: neither lost nor about to leave."""
        lines = str(self._java.executors()).splitlines()
        return tuple(_executor(*line.split("\t")) for line in sorted(lines))

    def use(self) -> tuple[ReplicaUse, ...]:
        """Sums since the start, by stage, replica and executor; differences of two are those of a period."""
        nodes = dict(line.split("\t") for line in str(self._java.everyNode()).splitlines())
        return tuple(_use(nodes, *line.split("\t")) for line in str(self._java.use()).splitlines())

    def cold_tasks(self, stage: str) -> int:
        """How many tasks of a stage have begun before the first one on their executor had ended."""
        return int(self._java.coldTasks(stage))

    def want(self, executors: int) -> bool:
        """Sets the target number of executors; whether the cluster manager took it."""
        return bool(self._java.want(executors))

    def send_away(self, executor: str) -> bool:
        """Lets an executor end its tasks and leave; whether it was told so."""
        return bool(self._java.sendAway(executor))

    def close(self) -> None:
        """Listens no more."""
        self._java.close()


def _executor(id: str, cores: str, host: str, node: str, region: str) -> Executor:
    return Executor(id, int(cores), host, node, region)


def _use(
    nodes: dict[str, str], stage: str, replica: str, executor: str, cpu: str, run: str, tasks: str
) -> ReplicaUse:
    node = nodes.get(executor) or alias(executor)
    return ReplicaUse(stage, int(replica), executor, node, int(cpu) / 1e9, int(run) / 1e3, int(tasks))
