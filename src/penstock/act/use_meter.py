"""From what replicas have used since the start to shares over the time since the last look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from penstock.act.cluster import ClusterNode, ReplicaUse
from penstock.plan.elastic import NodeSeen, Observation, StageSeen

Use = dict[tuple[str, int, str], float]
"""Seconds by stage, replica and node."""


@dataclass
class UseMeter:
    """S_a and U_n. `time="run"` counts waiting in a task as use: where service times are emulated, or spent
    in Python workers, which Spark's processor time leaves out."""

    time: Literal["cpu", "run"] = "cpu"
    _before: Use = field(default_factory=dict)
    _looked_at: float | None = None

    def look(
        self,
        now: float,
        nodes: Iterable[ClusterNode],
        uses: Iterable[ReplicaUse],
        stages: Mapping[str, StageSeen],
        name_of: Callable[[ClusterNode], str] = lambda node: node.name,
    ) -> Observation:
        """`stages` has what else is known of each. Its shares stand where no task of it was counted: small
        turns run in the driver, on no node."""
        seconds = 0.0 if self._looked_at is None else now - self._looked_at
        spent = self._spent(uses)
        self._looked_at = now
        return Observation(
            now,
            tuple(_node(node, name_of(node), spent, seconds) for node in nodes if node.state in SEEN),
            {
                name: replace(stage, shares=_shares(name, stage, spent, seconds))
                for name, stage in stages.items()
            },
        )

    def _spent(self, uses: Iterable[ReplicaUse]) -> Use:
        """Since the last look. An executor that was replaced starts from nothing."""
        now: Use = {}
        for use in uses:
            key = (use.stage, use.replica, use.node)
            seconds = use.cpu_seconds if self.time == "cpu" else use.run_seconds
            now[key] = now.get(key, 0.0) + seconds
        before, self._before = self._before, now
        return {key: _since(before.get(key, 0.0), seconds) for key, seconds in now.items()}


SEEN = ("up", "hidden")
"""One that starts or leaves takes no tasks."""


def _since(before: float, now: float) -> float:
    return now - before if now >= before else now


def _node(node: ClusterNode, name: str, spent: Use, seconds: float) -> NodeSeen:
    busy = sum(used for (_, _, where), used in spent.items() if where == node.name)
    share = busy / (seconds * node.cores) if seconds > 0.0 and node.cores else 0.0
    return NodeSeen(name, node.region, node.cores, min(share, 1.0))


def _shares(name: str, stage: StageSeen, spent: Use, seconds: float) -> tuple[float, ...]:
    busy = [0.0] * len(stage.shares)
    for (of, replica, _), used in spent.items():
        if of == name and replica < len(busy):
            busy[replica] += used
    if not any(busy) or seconds <= 0.0:
        return stage.shares
    return tuple(min(used / seconds, 1.0) for used in busy)
