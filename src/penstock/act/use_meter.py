"""From what replicas have used since the start to shares over the last period."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from penstock.act.cluster import COLD, NO_REPLICA, ClusterNode, ReplicaUse
from penstock.plan.elastic import NEARLY, NodeSeen, Observation, StageSeen

Use = dict[tuple[str, int, str], float]
"""Seconds by stage, replica and node."""


@dataclass
class UseMeter:
    """S_a and U_n. `time="run"` counts waiting in a task as use: where service times are emulated, or spent
    in Python workers, which Spark's processor time leaves out."""

    window_seconds: float = 30.0
    """Over which shares are taken: the operator managers' period, however often is looked."""
    time: Literal["cpu", "run"] = "cpu"
    _looks: deque[tuple[float, Use]] = field(default_factory=deque)

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
        self._looks.append((now, self._summed(uses)))
        # The last look that is a whole window ago stays, or nearly so: nobody looks to the microsecond.
        while len(self._looks) > 1 and self._looks[1][0] <= now - (1.0 - NEARLY) * self.window_seconds:
            self._looks.popleft()
        (began, before), (_, used) = self._looks[0], self._looks[-1]
        spent = {key: _since(before.get(key, 0.0), seconds) for key, seconds in used.items()}
        return Observation(
            now,
            tuple(_node(node, name_of(node), spent, now - began) for node in nodes if node.state in SEEN),
            {
                name: replace(
                    stage, shares=_shares(name, stage, spent, now - began), cold=_was_cold(name, spent)
                )
                for name, stage in stages.items()
            },
        )

    def _summed(self, uses: Iterable[ReplicaUse]) -> Use:
        summed: Use = {}
        for use in uses:
            key = (use.stage, use.replica, use.node)
            summed[key] = summed.get(key, 0.0) + (use.cpu_seconds if self.time == "cpu" else use.run_seconds)
        return summed


SEEN = ("up", "hidden", "leaving")
"""One that starts takes no tasks yet."""


def _since(before: float, now: float) -> float:
    """Tasks that run count with an estimate: once they have ended, all together may be less than before."""
    return max(now - before, 0.0)


def _node(node: ClusterNode, name: str, spent: Use, seconds: float) -> NodeSeen:
    busy = sum(used for (_, _, where), used in spent.items() if where == node.name)
    share = busy / (seconds * node.cores) if seconds > 0.0 and node.cores else 0.0
    return NodeSeen(name, node.region, node.cores, min(share, 1.0), node.state == "leaving")


def _was_cold(name: str, spent: Use) -> bool:
    return any(used > 0.0 for (of, replica, _), used in spent.items() if (of, replica) == (name, COLD))


def _shares(name: str, stage: StageSeen, spent: Use, seconds: float) -> tuple[float, ...]:
    busy = [0.0] * len(stage.shares)
    for (of, replica, _), used in spent.items():
        if of == name and 0 <= replica < len(busy):
            busy[replica] += used
        elif of == name and replica == NO_REPLICA:
            busy = [each + used / len(busy) for each in busy]
    if not any(busy) or seconds <= 0.0:
        return stage.shares
    return tuple(min(used / seconds, 1.0) for used in busy)
