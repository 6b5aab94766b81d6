"""The model-based infrastructure policy: in each region the cheapest nodes that carry what is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.plan.elastic.changes import AddNode, Proposal, ReleaseNode, Verdict, Wish
from penstock.plan.elastic.cover import Offer, cheapest_cover
from penstock.plan.elastic.global_policy import Judged, Memory, OwnChange, granted, refused
from penstock.plan.elastic.infrastructure_manager import InfrastructureView, verdict_on
from penstock.plan.elastic.nodes import Node, NodeKind, Room
from penstock.plan.elastic.recent import Recent
from penstock.plan.elastic.rules import applied
from penstock.plan.elastic.settings import Region


@dataclass(frozen=True)
class CheapestNodes:
    """Slots that pipelines have or will need soon, and the region's reserve, at the least price.

    A node that is there costs `stay_discount` less, one in use twice that: none is exchanged for a trifle.
    Nodes are given up when they have been too many for `calm_seconds`.
    """

    calm_seconds: float = 120.0
    stay_discount: float = 0.05

    def judge(self, proposals: Sequence[Proposal], view: InfrastructureView, memory: Memory) -> Judged:
        kept = dict(memory)
        sets: dict[str, _Set] = {}
        for name, region in view.rules.regions.items():
            needed = view.needs.get(name, 0) + region.reserve_slots
            recent = Recent.of(memory, f"needed {name}", self.calm_seconds).add(view.now, needed)
            kept[f"needed {name}"] = recent.pairs
            sets[name] = self._cheapest(region, recent.most, view)
        steps = _Steps(view, sets)
        verdicts = tuple(steps.verdict(proposal) for proposal in proposals)
        return Judged(verdicts, tuple(steps.rest()), kept)

    def _cheapest(self, region: Region, needed: int, view: InfrastructureView) -> _Set:
        room, fixed, loose = view.room, list[Node](), list[Node]()
        for node in room.expected(region.name):
            stays = node.phase == "starting" or node.name in view.critical or node.name in view.left_alone
            (fixed if stays else loose).append(node)
        left = max(needed - sum(node.slots for node in fixed), 0)
        alike: dict[Offer, list[Node]] = {}
        for node in sorted(loose, key=lambda node: (-room.ledger.used(node.name), node.name)):
            discount = self.stay_discount * (2.0 if room.ledger.used(node.name) else 1.0)
            alike.setdefault(Offer(node.slots, node.price * (1.0 - discount), 0), []).append(node)
        offers = [Offer(offer.slots, offer.price, len(nodes)) for offer, nodes in alike.items()]
        offers += [Offer(kind.slots, kind.price, -(-left // kind.slots)) for kind in region.kinds]
        counts = cheapest_cover(left, offers)
        staying = [
            node.name for nodes, count in zip(alike.values(), counts, strict=False) for node in nodes[:count]
        ]
        fresh = dict(zip(region.kinds, counts[len(alike) :], strict=True))
        return _Set(region, needed, frozenset([*staying, *(node.name for node in fixed)]), fresh)


@dataclass
class _Set:
    """The nodes of a region that stay, and how many of each kind are to come."""

    region: Region
    needed: int
    staying: frozenset[str]
    fresh: dict[NodeKind, int] = field(default_factory=dict)

    @property
    def told(self) -> str:
        return f"the cheapest nodes that carry {self.needed} slots in {self.region.name}"


class _Steps:
    """From the nodes there are to the cheapest set, first by what was proposed."""

    def __init__(self, view: InfrastructureView, sets: Mapping[str, _Set]):
        self._view, self._sets = view, sets
        self._room: Room = view.room
        self._done: set[str] = set()

    def verdict(self, proposal: Proposal) -> Verdict:
        change = proposal.change
        if isinstance(change, AddNode) and change.region in self._sets:
            best = self._sets[change.region]
            kind = NodeKind(change.slots, change.price)
            if not best.fresh.get(kind):
                return refused(f"{best.told} need no more of {kind.slots} slots")
            best.fresh[kind] -= 1
        elif isinstance(change, ReleaseNode) and change.node in self._room.nodes:
            self._done.add(change.node)
            best = self._sets[self._room.nodes[change.node].region]
            if change.node in best.staying:
                return refused(f"it is one of {best.told}")
        return self._try(proposal)

    def rest(self) -> list[OwnChange]:
        own = []
        for name, best in self._sets.items():
            names = iter(self._view.fresh_names.get(name, ()))
            for kind, count in best.fresh.items():
                for _ in range(count):
                    node = next((each for each in names if each not in self._room.nodes), "")
                    if node:
                        own.append(self._own(AddNode(node, name, kind.slots, kind.price), best))
            own.extend(self._own(ReleaseNode(node), best) for node in self._going(name, best))
        return own

    def _going(self, region: str, best: _Set) -> list[str]:
        """Nodes that can go now: what is on them must fit on those that stay and are there."""
        here = [node for node in self._view.room.in_view(region) if node.name not in self._done]
        spare = sum(self._room.free(node) for node in here if node.name in best.staying)
        going = []
        for node in here:
            used = self._room.ledger.used(node.name)
            if node.name not in best.staying and used <= spare:
                spare -= used
                going.append(node.name)
        return going

    def _own(self, change: AddNode | ReleaseNode, best: _Set) -> OwnChange:
        is_one = "is" if isinstance(change, AddNode) else "is not"
        wish = Wish(change, f"it {is_one} one of {best.told}")
        return OwnChange(wish, self._try(Proposal(0, "infrastructure", "all", change, wish.reason)))

    def _try(self, proposal: Proposal) -> Verdict:
        verdict = verdict_on(proposal, self._room, self._view)
        if verdict.kind == "granted":
            self._room = applied(proposal.change, self._room, self._view.now)
            return granted("it follows the plan")
        return verdict
