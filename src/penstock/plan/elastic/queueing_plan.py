"""The model-based application policy: replicas by a queueing plan of the pipeline, not by thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from statistics import median

from penstock.model import Network, NetworkStage
from penstock.plan.elastic.application_manager import ApplicationView
from penstock.plan.elastic.changes import AddReplica, Proposal, RemoveReplica, Verdict, Wish
from penstock.plan.elastic.global_policy import Judged, Memory, OwnChange, asked, granted, refused
from penstock.plan.elastic.nodes import Room
from penstock.plan.elastic.recent import Recent
from penstock.plan.elastic.rules import applied
from penstock.plan.slot_errors import SlotError, TargetOutOfReachError
from penstock.plan.slots import MOST_SLOTS, SlotPlan, judge, min_processors


@dataclass(frozen=True)
class QueueingPlan:
    """The fewest replicas with which E[T] stays within the pipeline's target (DRS, problem 8).

    Growth is planned for ahead: `ahead_seconds` for replicas, `nodes_ahead_seconds` for the slots that the
    infrastructure manager is told of. What meets the target stays, until for `calm_seconds` fewer would have
    met it at rates higher by `margin`: so noise changes nothing.
    """

    ahead_seconds: float = 60.0
    nodes_ahead_seconds: float = 120.0
    calm_seconds: float = 120.0
    margin: float = 0.1
    headroom: float = 0.1
    """Of the target, what is left for chance."""
    slack: float = 1.3
    """Where a pipeline has no target: E[T] over what the work alone takes."""
    most_share: float = 0.85
    """Of a replica's time; where no number of replicas meets the target, it is all that is planned for."""
    least_share: float = 0.2
    """Of a replica's time: a target just above what the work alone takes would want replicas without end."""

    def judge(self, proposals: Sequence[Proposal], view: ApplicationView, memory: Memory) -> Judged:
        if unknown := _unknown(view):
            return Judged(tuple(refused(f"no plan: {unknown}") for _ in proposals), memory=memory)
        growth, memory = self._growth(view, memory)
        roomy = self._plan(self._network(view, growth, self.ahead_seconds, 1.0 + self.margin), view)
        recent = Recent.of(memory, "wanted", self.calm_seconds).add(view.now, roomy.total)
        fewer = roomy if recent.calm(view.now) and recent.most < _total(view) else None
        plan, wanted = self._wanted(view, self._network(view, growth, self.ahead_seconds), fewer)
        later = self._plan(self._network(view, growth, self.nodes_ahead_seconds), view)
        steps = _Steps(view, wanted, plan)
        verdicts = tuple(steps.verdict(proposal) for proposal in proposals)
        memory = {**memory, "wanted": recent.pairs}
        return Judged(verdicts, tuple(steps.rest()), memory, _needs(view, wanted, later.slots))

    def _wanted(
        self, view: ApplicationView, network: Network, fewer: SlotPlan | None
    ) -> tuple[SlotPlan, dict[str, int]]:
        """More where the target is missed and that helps, else `fewer` if there is a plan, else the same."""
        have = {stage.name: view.room.ledger.replicas(stage.name) for stage in network.stages}
        if network.sojourn_seconds(have) > self._aim(view, network):
            plan = self._plan(network, view)
            more = {name: max(slots, plan.slots[name]) for name, slots in have.items()}
            if more != have:
                return plan, more
        if fewer is not None:
            return fewer, dict(fewer.slots)
        return judge(network, have), have

    def _growth(self, view: ApplicationView, memory: Memory) -> tuple[dict[str, float], Memory]:
        """Rows/s by which the rate of each stage grows every second, over about two looks.

        All grow by the same share, the median of theirs: a stage whose rows come in a lump, as the one before
        it stood still while its state was divided, has not got more to do.
        """
        rates = {
            each.name: view.seen[each.name].rows_per_second for each in view.pipeline.stages if each.elastic
        }
        shares, kept = list[float](), dict(memory)
        for name, rate in rates.items():
            at, before, trend = memory.get(f"rate {name}", (view.now, rate, 0.0))
            if view.now > at:
                trend = 0.5 * trend + 0.5 * (rate - before) / (view.now - at)
            kept[f"rate {name}"] = (view.now, rate, trend)
            if rate > 0.0:
                shares.append(trend / rate)
        growth = max(median(shares), 0.0) if shares else 0.0
        return {name: growth * rate for name, rate in rates.items()}, kept

    def _network(
        self, view: ApplicationView, growth: Mapping[str, float], ahead: float, times: float = 1.0
    ) -> Network:
        stages = []
        for stage in view.pipeline.stages:
            if stage.elastic:
                seen = view.seen[stage.name]
                rate = times * (seen.rows_per_second + growth[stage.name] * ahead)
                stages.append(NetworkStage(stage.name, seen.model(rate), seen.weight))
        return Network(tuple(stages))

    def _aim(self, view: ApplicationView, network: Network) -> float:
        target = view.pipeline.target_seconds
        return self.slack * network.floor_seconds if target == inf else target * (1.0 - self.headroom)

    def _plan(self, network: Network, view: ApplicationView) -> SlotPlan:
        seconds = self._aim(view, network)
        try:
            plan = min_processors(network, seconds, MOST_SLOTS)
        except TargetOutOfReachError as error:
            plan = error.best or self._by_share(network, f"{seconds:.3g} s are out of reach")
        except SlotError as error:
            plan = self._by_share(network, str(error))
        most = {stage.name: stage.most_replicas for stage in view.pipeline.stages}
        useful = {each.name: ceil(each.model.busy_slots / self.least_share) for each in network.stages}
        limited = {name: min(slots, most[name], max(useful[name], 1)) for name, slots in plan.slots.items()}
        return plan if limited == plan.slots else judge(network, limited, "the most replicas there may be")

    def _by_share(self, network: Network, why: str) -> SlotPlan:
        slots = {each.name: max(1, ceil(each.model.busy_slots / self.most_share)) for each in network.stages}
        return judge(network, slots, f"{why}; replicas are busy {self.most_share:.0%} of the time at most")


class _Steps:
    """From the replicas there are to those that are wanted, first by what was proposed."""

    def __init__(self, view: ApplicationView, wanted: Mapping[str, int], plan: SlotPlan):
        self._view, self._wanted = view, wanted
        self._room: Room = view.room
        self._told = f"E[T] {1000 * plan.sojourn_seconds:.3g} ms: {plan.reason}"

    def verdict(self, proposal: Proposal) -> Verdict:
        change = proposal.change
        if not isinstance(change, AddReplica | RemoveReplica):
            return refused("only replicas are planned")
        have, wanted = self._room.ledger.replicas(change.stage), self._wanted.get(change.stage, 0)
        told = f"the plan has {wanted} replica{'s' if wanted != 1 else ''} of {change.stage}, {self._told}"
        if wanted == have or (wanted > have) != isinstance(change, AddReplica):
            return refused(told)
        return self._try(Wish(change, told)).verdict

    def rest(self) -> list[OwnChange]:
        """What nobody proposed; replicas that go make room for others."""
        own = []
        for sign in (-1, 1):
            for name, wanted in self._wanted.items():
                have = self._room.ledger.replicas(name)
                for step in range(max(sign * (wanted - have), 0)):
                    reason = f"the plan has {wanted} rather than {have} of {name}, {self._told}"
                    own.append(self._try(self._wish(name, sign, reason)))
                    if own[-1].verdict.kind != "granted" and step == 0 and sign < 0:
                        break
        return own

    def _wish(self, stage: str, sign: int, reason: str) -> Wish:
        room = self._room
        if sign > 0:
            free = room.with_slot(self._view.homes.get(stage, ""))
            # Fullest first, so that whole nodes stay empty and can be given up.
            node = min(free, key=lambda node: (room.free(node), *room.use(node)), default=None)
            return Wish(AddReplica(stage, node.name if node else ""), reason)
        places = room.ledger.places[stage]
        index = min(range(len(places)), key=lambda index: (room.ledger.used(places[index]), -index))
        return Wish(RemoveReplica(stage, index, places[index]), reason)

    def _try(self, wish: Wish) -> OwnChange:
        why_not = self._view.rules.why_not(wish.change, self._room)
        if not why_not:
            self._room = applied(wish.change, self._room, self._view.now)
            return OwnChange(wish, granted(wish.reason))
        if isinstance(wish.change, AddReplica) and not wish.change.node:
            return OwnChange(wish, asked(f"{why_not}: the infrastructure manager is asked for one"))
        return OwnChange(wish, refused(why_not))


def _total(view: ApplicationView) -> int:
    """Replicas of all stages that are planned."""
    return sum(view.room.ledger.replicas(stage.name) for stage in view.pipeline.stages if stage.elastic)


def _unknown(view: ApplicationView) -> str:
    """Why no plan can be made yet; "" if one can."""
    elastic = [stage.name for stage in view.pipeline.stages if stage.elastic]
    if not elastic:
        return f"{view.pipeline.name} has no stage whose replicas may change"
    missing = [name for name in elastic if name not in view.seen or not view.seen[name].known]
    return f"nothing is known of {missing[0]} yet" if missing else ""


def _needs(view: ApplicationView, wanted: Mapping[str, int], later: Mapping[str, int]) -> dict[str, int]:
    """Slots by region, now or soon."""
    needs: dict[str, int] = {}
    for stage in view.pipeline.stages:
        now = wanted.get(stage.name, view.room.ledger.replicas(stage.name))
        region = view.homes.get(stage.name, "")
        needs[region] = needs.get(region, 0) + max(now, later.get(stage.name, 0))
    return needs
