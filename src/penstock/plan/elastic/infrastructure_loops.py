"""The loops of the infrastructure side: region managers propose, the infrastructure manager decides."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plan.elastic.changes import AddNode, Proposal, ReleaseNode, Wish
from penstock.plan.elastic.global_policy import granted
from penstock.plan.elastic.infrastructure_manager import InfrastructureView
from penstock.plan.elastic.region_manager import RegionView
from penstock.plan.elastic.round import Round
from penstock.plan.elastic.settings import Region


def run_regions(round_: Round) -> None:
    """Every region manager looks at its nodes."""
    waiting = {proposal.manager for proposal in round_.waiting if proposal.level == "region"}
    for region in round_.settings.regions:
        if region.name not in waiting:
            _look(round_, region)


def _look(round_: Round, region: Region) -> None:
    view = RegionView(
        region,
        round_.room,
        round_.homeless(region.name),
        round_.fresh_names(region.name),
        frozenset(round_.left_alone),
    )
    wishes = round_.settings.region_policy.propose(view)
    if not any(isinstance(wish.change, AddNode) for wish in wishes):
        round_.open.pop(f"grow {region.name}", None)
    wished = {wish.change.node for wish in wishes if isinstance(wish.change, ReleaseNode)}
    for node in round_.room.in_view(region.name):
        if node.name not in wished:
            round_.open.pop(f"release {node.name}", None)
    for wish in wishes:
        round_.waiting.append(round_.propose("region", region.name, wish, _causes(round_, region.name, wish)))


def _causes(round_: Round, region: str, wish: Wish) -> Sequence[int]:
    """What took the slots that are short, or emptied the node."""
    if isinstance(wish.change, AddNode):
        asked = [each.reconfiguration for each in round_.requests if each.region == region]
        return [*round_.took.get(region, ()), *asked]
    if isinstance(wish.change, ReleaseNode) and wish.change.node in round_.emptied:
        return [round_.emptied[wish.change.node]]
    return ()


def run_infrastructure(round_: Round) -> None:
    """The infrastructure manager ends what was begun, decides, and answers the application side."""
    _end_scale_ins(round_)
    _decide(round_)
    _grow_as_asked(round_)
    round_.took, round_.requests = {}, []


def _end_scale_ins(round_: Round) -> None:
    """Nodes that were given up go; those that were not, or not in time, come back."""
    for scale_in in tuple(round_.scale_ins.values()):
        waited = round_.now - scale_in.asked_at
        if scale_in.refusal:
            round_.cancel(scale_in, f"refused by {scale_in.refusal}")
        elif not round_.room.ledger.used(scale_in.node):
            del round_.scale_ins[scale_in.node]
            change = ReleaseNode(scale_in.node)
            proposal = Proposal(scale_in.reconfiguration, "infrastructure", "all", change, "as asked for")
            round_.settle(
                "infrastructure", "all", proposal, granted(f"nothing is on it after {waited:.0f} s")
            )
        elif waited >= round_.settings.periods.scale_in_seconds - 1e-6:
            round_.cancel(scale_in, f"not given up in {waited:.0f} s")


def _decide(round_: Round) -> None:
    mine = [each for each in round_.waiting if each.level == "region"]
    round_.waiting = [each for each in round_.waiting if each.level != "region"]
    memory = round_.memory.get("infrastructure", {})
    judged = round_.settings.infrastructure.judge(mine, _view(round_), memory)
    for proposal, verdict in zip(mine, judged.verdicts, strict=True):
        round_.settle("infrastructure", "all", proposal, verdict)
    for own in judged.own:
        region = own.wish.change.region if isinstance(own.wish.change, AddNode) else ""
        causes = _causes(round_, region, own.wish)
        proposal = round_.propose("infrastructure", "all", own.wish, causes)
        round_.settle("infrastructure", "all", proposal, own.verdict)
    round_.memory["infrastructure"] = judged.memory


def _view(round_: Round) -> InfrastructureView:
    critical = {stage.name for each in round_.settings.pipelines for stage in each.stages if stage.critical}
    return InfrastructureView(
        round_.room,
        round_.rules,
        round_.now,
        {name: _needed(round_, name) for name in round_.rules.regions},
        round_.owners,
        frozenset(node for stage in critical for node in round_.room.ledger.places.get(stage, ())),
        frozenset(round_.left_alone),
        {name: round_.fresh_names(name) for name in round_.rules.regions},
    )


def _needed(round_: Round, region: str) -> int:
    """Slots that pipelines have, or were told to need if that is more."""
    needed = 0
    for pipeline in round_.settings.pipelines:
        here = sum(
            round_.room.ledger.replicas(stage.name)
            for stage in pipeline.stages
            if round_.homes.get(stage.name) == region
        )
        needed += max(here, round_.needs.get(pipeline.name, {}).get(region, 0))
    return needed


def _grow_as_asked(round_: Round) -> None:
    """Slots that pipelines asked for, as far as none is there or on its way."""
    for region in round_.settings.regions:
        short = round_.homeless(region.name) - round_.room.free_slots(region.name)
        kind = region.smallest
        for name in round_.fresh_names(region.name)[: max(-(-short // kind.slots), 0)]:
            asked = [each.reconfiguration for each in round_.requests if each.region == region.name]
            wish = Wish(
                AddNode(name, region.name, kind.slots, kind.price),
                f"{short} slot{'s are' if short > 1 else ' is'} asked for in {region.name} and none is free",
            )
            proposal = round_.propose("infrastructure", "all", wish, asked)
            round_.settle("infrastructure", "all", proposal, granted("pipelines wait for it"))
