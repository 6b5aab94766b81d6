"""What a cluster offers to those who manage its nodes. Stated here, met elsewhere: this imports no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ClusterNode(Protocol):
    """A node as the cluster knows it."""

    @property
    def name(self) -> str: ...

    @property
    def region(self) -> str: ...

    @property
    def cores(self) -> int:
        """Task slots that are registered."""
        ...

    @property
    def state(self) -> str:
        """`starting`, `up`, `hidden` or `leaving`."""
        ...


NO_REPLICA = -1
"""Of tasks that hand rows to others, before a shuffle: they are all replicas' alike."""
COLD = -2
"""Of tasks that begin before the first one of their stage on an executor has ended: it loads code there."""


class ReplicaUse(Protocol):
    """What task `replica` of a stage's turns has used on one node, since the start."""

    @property
    def stage(self) -> str: ...

    @property
    def replica(self) -> int: ...

    @property
    def node(self) -> str: ...

    @property
    def cpu_seconds(self) -> float: ...

    @property
    def run_seconds(self) -> float: ...


class Nodes(Protocol):
    """Nodes that come and go. All but the first two return at once: what they led to is seen by `nodes`."""

    def nodes(self) -> Sequence[ClusterNode]: ...

    def use(self) -> Sequence[ReplicaUse]: ...

    def start(self, cores: int, region: str, name: str = "") -> str:
        """The name that the node will have: `name`, unless the cluster gives names itself."""
        ...

    def hide(self, name: str) -> None:
        """Its slots are taken from the pool; turns that run go on."""
        ...

    def show(self, name: str) -> None:
        """Undoes `hide`."""
        ...

    def release(self, name: str) -> None:
        """Decommissions it, which cannot be undone."""
        ...
