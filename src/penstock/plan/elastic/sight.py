"""What has happened since the last look: nodes that came and went, stages that run on other slots."""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.elastic.changes import ReleaseNode
from penstock.plan.elastic.nodes import NO_PLACE, Node, Room
from penstock.plan.elastic.observation import NodeSeen
from penstock.plan.elastic.round import Round


def take_in(round_: Round) -> None:
    """Brings nodes and ledger to what is seen."""
    for failure in round_.seen.failures:
        told = f"not done: {failure.reason}"
        round_.saw("infrastructure", "all", failure.reconfiguration, told)
    _forget_stages(round_)
    seen = {node.name: node for node in round_.seen.nodes if not node.leaving}
    going = {node.name for node in round_.seen.nodes if node.leaving}
    for name, node in tuple(round_.room.nodes.items()):
        if name in going and node.phase == "leaving":
            _still_there(round_, node)
        elif name not in seen:
            _not_seen(round_, node)
    for each in seen.values():
        known = round_.room.nodes.get(each.name)
        if known is None:
            _adopt(round_, each)
        else:
            _known(round_, known, each)
    _correct_replicas(round_)


def _forget_stages(round_: Round) -> None:
    """Pipelines that are managed no more take no slots."""
    gone = [stage for stage in round_.room.ledger.places if stage not in round_.owners]
    if not gone:
        return
    round_.room = round_.room.placed(round_.room.ledger.only(round_.owners))
    names = {each.name for each in round_.settings.pipelines}
    round_.needs = {name: needs for name, needs in round_.needs.items() if name in names}
    round_.memory = {
        key: memory for key, memory in round_.memory.items() if key.partition(" ")[2] in {"", *names}
    }
    round_.saw("application", gone[0], _new(round_), f"{', '.join(gone)} went: their slots are free")


def _not_seen(round_: Round, node: Node) -> None:
    waited = round_.now - node.since
    if node.phase == "starting":
        if waited < round_.settings.periods.start_seconds:
            return
        _forget(round_, node, f"{node.name} has not come in {waited:.0f} s and is not counted on any more")
    elif node.phase == "leaving":
        _forget(round_, node, f"{node.name} is gone after {waited:.0f} s")
    else:
        count = round_.room.ledger.used(node.name)
        _forget(round_, node, f"{node.name} was lost with {count} replica{'' if count == 1 else 's'}")


def _forget(round_: Round, node: Node, reason: str) -> None:
    round_.saw("region", node.region, _number(round_, node.name), reason)
    homeless = {replica.stage for replica in round_.room.ledger.on(node.name)}
    if homeless:
        number = round_.decisions[-1].reconfiguration
        for pipeline in {round_.owners[stage] for stage in homeless}:
            round_.open.setdefault(f"place {pipeline} off {NO_PLACE}", number)
    nodes = {name: each for name, each in round_.room.nodes.items() if name != node.name}
    round_.room = Room(nodes, round_.room.ledger.lost(node.name))
    round_.scale_ins.pop(node.name, None)


def _adopt(round_: Round, seen: NodeSeen) -> None:
    """A node that nobody here asked for: one that was there before, or came after all."""
    region = round_.rules.regions.get(seen.region)
    prices = {kind.slots: kind.price for kind in region.kinds} if region else {}
    node = Node(
        seen.name,
        seen.region,
        seen.slots,
        prices.get(seen.slots, float(seen.slots)),
        since=round_.now,
        busy_share=seen.busy_share,
    )
    round_.room = Room({**round_.room.nodes, node.name: node}, round_.room.ledger)
    slots = f"{seen.slots} slot{'s' if seen.slots > 1 else ''}"
    round_.saw("region", seen.region, _number(round_, seen.name), f"{seen.name} of {slots} is there")


def _known(round_: Round, node: Node, seen: NodeSeen) -> None:
    waited = round_.now - node.since
    fresh = replace(node, busy_share=seen.busy_share, slots=seen.slots)
    if node.phase == "starting":
        fresh = replace(fresh, phase="up", since=round_.now)
        number = _number(round_, node.name)
        round_.saw("region", node.region, number, f"{node.name} is up after {waited:.0f} s")
    elif node.phase == "leaving":
        _still_there(round_, node)
        return
    round_.room = Room({**round_.room.nodes, node.name: fresh}, round_.room.ledger)
    _fit(round_, fresh)


def _still_there(round_: Round, node: Node) -> None:
    """It drains; one that does so for too long is told to go again."""
    waited = round_.now - node.since
    if waited > round_.settings.periods.scale_in_seconds:
        number = _number(round_, node.name)
        round_.saw("region", node.region, number, f"{node.name} is still there after {waited:.0f} s")
        round_.make(number, ReleaseNode(node.name))


def _fit(round_: Round, node: Node) -> None:
    """A node that came back with fewer slots holds no more than it has."""
    for replica in round_.room.ledger.on(node.name)[node.slots :]:
        round_.room = round_.room.placed(round_.room.ledger.move(replica, NO_PLACE))


def _correct_replicas(round_: Round) -> None:
    """A stage that has long run on other slots than the ledger has is taken as it is."""
    settle = round_.settings.periods.settle_seconds
    for stage, nodes in round_.room.ledger.places.items():
        seen = round_.seen.stages.get(stage)
        if seen is None or len(seen.shares) in (0, len(nodes)):
            continue
        if round_.now - round_.changed_at.get(stage, round_.now) < settle:
            round_.changed_at.setdefault(stage, round_.now)
            continue
        ledger = round_.room.ledger
        for _ in range(len(seen.shares), len(nodes)):
            ledger = ledger.remove(stage, ledger.replicas(stage) - 1)
        for _ in range(len(nodes), len(seen.shares)):
            ledger = ledger.add(stage, NO_PLACE)
        round_.room = round_.room.placed(ledger)
        round_.changed_at[stage] = round_.now
        told = f"{stage} runs on {len(seen.shares)} slots, not on {len(nodes)}: taken as it is"
        round_.saw("operator", stage, _new(round_), told)


def _number(round_: Round, node: str) -> int:
    """The reconfiguration that started or released the node; it is done with that."""
    number = round_.reconfiguration(f"node {node}")
    del round_.open[f"node {node}"]
    return number


def _new(round_: Round) -> int:
    number = round_.reconfiguration("seen")
    del round_.open["seen"]
    return number
