"""The loops of the infrastructure side: region managers propose, the infrastructure manager decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.plan.elastic.changes import AddNode, Proposal, ReleaseNode, Wish
from penstock.plan.elastic.global_policy import granted
from penstock.plan.elastic.infrastructure_manager import InfrastructureView
from penstock.plan.elastic.region_manager import RegionView
from penstock.plan.elastic.round import Round, key_of
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
        frozenset(_unmeasured(round_, region.name)),
    )
    wishes = round_.settings.region_policy.propose(view)
    wished = {key_of(wish.change) for wish in wishes}
    here = (node.name for node in round_.room.in_view(region.name))
    for key in (*(f"grow {name}" for name in view.fresh_names), *(f"release {name}" for name in here)):
        if key not in wished:
            round_.open.pop(key, None)
    causes = _Causes(round_)
    for wish in wishes:
        round_.waiting.append(round_.propose("region", region.name, wish, causes.of(wish)))


def _unmeasured(round_: Round, region: str) -> Iterator[str]:
    """Nodes in view that came, or whose replicas changed, less than a period ago."""
    since = round_.now - round_.settings.periods.region_seconds + 1e-6
    for node in round_.room.in_view(region):
        stages = {replica.stage for replica in round_.room.ledger.on(node.name)}
        if node.since > since or any(round_.changed_at.get(stage, 0.0) > since for stage in stages):
            yield node.name


class _Causes:
    """What took the slots that are short, or gave those that are too many: one for each node in turn."""

    def __init__(self, round_: Round):
        self._nodes = round_.room.nodes
        self._took, self._gave = dict(round_.took), dict(round_.gave)
        for each in round_.requests:
            self._took[each.region] = (*self._took.get(each.region, ()), each.reconfiguration)

    def of(self, wish: Wish) -> Sequence[int]:
        if isinstance(wish.change, AddNode):
            return self._next(self._took, wish.change.region)
        if isinstance(wish.change, ReleaseNode) and wish.change.node in self._nodes:
            return self._next(self._gave, self._nodes[wish.change.node].region)
        return ()

    def _next(self, numbers: dict[str, tuple[int, ...]], region: str) -> Sequence[int]:
        first, *others = numbers.get(region, ()) or (0,)
        if others:
            numbers[region] = tuple(others)
        return (first,) if first else ()


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
    causes = _Causes(round_)
    for own in judged.own:
        proposal = round_.propose("infrastructure", "all", own.wish, causes.of(own.wish))
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
    causes = _Causes(round_)
    for region in round_.settings.regions:
        short = round_.homeless(region.name) - round_.room.free_slots(region.name)
        kind = region.smallest
        for name in round_.fresh_names(region.name)[: max(-(-short // kind.slots), 0)]:
            wish = Wish(
                AddNode(name, region.name, kind.slots, kind.price),
                f"{short} slot{'s are' if short > 1 else ' is'} asked for in {region.name} and none is free",
            )
            proposal = round_.propose("infrastructure", "all", wish, causes.of(wish))
            round_.settle("infrastructure", "all", proposal, granted("pipelines wait for it"))
