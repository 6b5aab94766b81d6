"""The loops of the application side: operator managers propose, application managers decide."""

from __future__ import annotations

from random import Random

from penstock.plan.elastic.application_manager import ApplicationView, first_places, give_up, home_of
from penstock.plan.elastic.changes import AddReplica, Consolidate, Move, Proposal, Wish
from penstock.plan.elastic.global_policy import granted
from penstock.plan.elastic.nodes import NO_PLACE
from penstock.plan.elastic.operator_manager import OperatorView
from penstock.plan.elastic.round import Round
from penstock.plan.elastic.settings import NEARLY, ManagedPipeline, ManagedStage

CALM_PERIODS = 2.0
"""For so many a pipeline must have been as it is before a replica is given up."""


def run_operators(round_: Round) -> None:
    """Every operator manager looks at its stage."""
    waiting = {proposal.manager for proposal in round_.waiting if proposal.level == "operator"}
    for pipeline in round_.settings.pipelines:
        for stage in pipeline.stages:
            if stage.elastic and stage.name not in waiting and _settled(round_, stage.name):
                _look(round_, pipeline, stage)


def _look(round_: Round, pipeline: ManagedPipeline, stage: ManagedStage) -> None:
    view = OperatorView(
        stage,
        round_.homes[stage.name],
        round_.seen.stages[stage.name].shares,
        round_.room,
        Random(f"{round_.settings.seed} {stage.name} {round_.now}"),
        all(_calm(round_, each.name) for each in pipeline.stages),
    )
    wish = round_.settings.operators.propose(view)
    more = isinstance(wish, Wish) and isinstance(wish.change, AddReplica)
    for key, wished in (("more", more), ("fewer", isinstance(wish, Wish) and not more)):
        if not wished:
            round_.open.pop(f"{key} {stage.name}", None)
    if isinstance(wish, Wish):
        round_.waiting.append(round_.propose("operator", stage.name, wish))


def _settled(round_: Round, stage: str) -> bool:
    """Whether a stage runs as the ledger has it, and was measured as it is for a whole period."""
    seen = round_.seen.stages.get(stage)
    nodes = round_.room.ledger.places.get(stage, ())
    if seen is None or not nodes or NO_PLACE in nodes or len(seen.shares) != len(nodes):
        return False
    return _unchanged(round_, stage, 1.0)


def _calm(round_: Round, stage: str) -> bool:
    """Whether nothing has happened of late that lets rows wait at a stage, and those behind it be idle."""
    seen = round_.seen.stages.get(stage)
    return _unchanged(round_, stage, CALM_PERIODS) and not (seen is not None and seen.cold)


def _unchanged(round_: Round, stage: str, periods: float) -> bool:
    """Whether a stage has run as it is for so many periods of the operator managers."""
    seen = round_.seen.stages.get(stage)
    since = max(round_.changed_at.get(stage, 0.0), seen.since if seen is not None else 0.0)
    return round_.now - since >= (periods - NEARLY) * round_.settings.periods.operator_seconds


def run_applications(round_: Round) -> None:
    """Every application manager answers the other side, places what has no node, and decides."""
    for pipeline in round_.settings.pipelines:
        _start(round_, pipeline)
        _place(round_, pipeline)
        _answer(round_, pipeline)
        _decide(round_, pipeline)


def _view(round_: Round, pipeline: ManagedPipeline) -> ApplicationView:
    return ApplicationView(pipeline, round_.room, round_.homes, round_.rules, round_.now, round_.seen.stages)


def _start(round_: Round, pipeline: ManagedPipeline) -> None:
    """First places, for as many replicas as run already or are declared."""
    for stage in pipeline.stages:
        if round_.room.ledger.replicas(stage.name):
            continue
        round_.homes[stage.name] = home_of(stage, _view(round_, pipeline))
        seen = round_.seen.stages.get(stage.name)
        count = max(len(seen.shares) if seen else 0, 0) or stage.replicas
        region = round_.homes[stage.name]
        number = round_.reconfiguration(f"start {pipeline.name}")
        for name, node in first_places(_view(round_, pipeline), region, [stage.name] * count):
            if node:
                wish = Wish(AddReplica(name, node), f"{pipeline.name} starts")
                proposal = Proposal(number, "application", pipeline.name, wish.change, wish.reason)
                round_.note("application", pipeline.name, "proposed", proposal, wish.reason)
                balanced = granted(f"balanced over {pipeline.start_nodes} nodes of {region}")
                round_.settle("application", pipeline.name, proposal, balanced)
            else:
                round_.room = round_.room.placed(round_.room.ledger.add(name, NO_PLACE))
                round_.open.setdefault(f"place {pipeline.name} off {NO_PLACE}", number)
    round_.open.pop(f"start {pipeline.name}", None)


def _place(round_: Round, pipeline: ManagedPipeline) -> None:
    """Replicas without a node get one, or the other side is asked for it."""
    mine = {stage.name for stage in pipeline.stages}
    room, moves, short = round_.room, list[Move](), list[str]()
    for replica in room.ledger.on(NO_PLACE):
        if replica.stage not in mine:
            continue
        free = room.with_slot(round_.homes.get(replica.stage, ""))
        if not free:
            short.append(replica.stage)
            continue
        moves.append(Move(replica.stage, replica.index, free[0].name))
        room = room.placed(room.ledger.move(replica, free[0].name))
    if moves:
        reason = f"{len(moves)} replica{'s have' if len(moves) > 1 else ' has'} no node"
        wish = Wish(Consolidate(NO_PLACE, pipeline.name, tuple(moves)), reason)
        proposal = round_.propose("application", pipeline.name, wish)
        round_.settle("application", pipeline.name, proposal, granted("the least used nodes have a slot"))
    key = f"place {pipeline.name} off {NO_PLACE}"
    if short:
        number = round_.reconfiguration(key)
        told = f"no node has a slot for {', '.join(sorted(set(short)))}: the infrastructure manager is asked"
        proposal = Proposal(number, "application", pipeline.name, AddReplica(short[0], NO_PLACE), told)
        round_.note("application", pipeline.name, "asked", proposal, told)


def _answer(round_: Round, pipeline: ManagedPipeline) -> None:
    """Whether the nodes that the infrastructure manager wants are given up."""
    for scale_in in tuple(round_.scale_ins.values()):
        if pipeline.name not in scale_in.waiting:
            continue
        change, verdict = give_up(_view(round_, pipeline), scale_in.node)
        asked = f"{scale_in.node} is to be given up"
        proposal = Proposal(scale_in.reconfiguration, "infrastructure", "all", change, asked)
        settled = round_.settle("application", pipeline.name, proposal, verdict)
        refusal = f"{pipeline.name}: {settled.reason}" if settled.kind != "granted" else ""
        round_.answered(scale_in, pipeline.name, refusal)


def _decide(round_: Round, pipeline: ManagedPipeline) -> None:
    mine = [each for each in round_.waiting if round_.owners.get(each.manager) == pipeline.name]
    round_.waiting = [each for each in round_.waiting if each not in mine]
    # What is still wanted is asked for again; else every look before the other side's would count anew.
    round_.requests = [each for each in round_.requests if round_.owners.get(each.stage) != pipeline.name]
    key = f"application {pipeline.name}"
    judged = round_.settings.applications.judge(mine, _view(round_, pipeline), round_.memory.get(key, {}))
    for proposal, verdict in zip(mine, judged.verdicts, strict=True):
        round_.settle("application", pipeline.name, proposal, verdict)
    for own in judged.own:
        proposal = round_.propose("application", pipeline.name, own.wish)
        round_.settle("application", pipeline.name, proposal, own.verdict)
    round_.memory[key] = judged.memory
    if judged.needs:
        round_.needs[pipeline.name] = judged.needs
