"""What the managers decided, told: one reconfiguration across all of them, or a line for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from penstock.plan.elastic.changes import AddNode, AddReplica, Decision, ReleaseNode, RemoveReplica
from penstock.plan.elastic.nodes import ElasticError

TITLES = {
    "operator": "operator manager",
    "application": "application manager",
    "region": "region manager",
    "infrastructure": "infrastructure manager",
}
VERBS = {
    "proposed": "proposes",
    "granted": "grants",
    "refused": "refuses",
    "asked": "asks for",
    "cancelled": "cancels",
    "seen": "sees",
}


def story(decisions: Iterable[Decision], reconfiguration: int) -> str:
    """What every manager had to do with a reconfiguration, in order, and what it led to."""
    kept = list(decisions)
    told = [
        each for each in kept if each.reconfiguration == reconfiguration or reconfiguration in each.causes
    ]
    if not told:
        known = sorted({each.reconfiguration for each in kept})
        there = f"from {known[0]} to {known[-1]}" if known else "none"
        raise ElasticError(f"no reconfiguration {reconfiguration} is kept, of: {there}")
    lines = [f"reconfiguration {reconfiguration}: {outcome(told)}"]
    lines += [_line(each, reconfiguration) for each in told]
    return "\n".join(lines)


def overview(decisions: Iterable[Decision], last: int) -> list[str]:
    """A line for each of the last reconfigurations in which something was decided."""
    by_number: dict[int, list[Decision]] = {}
    for each in decisions:
        by_number.setdefault(each.reconfiguration, []).append(each)
    lines = []
    for number, told in sorted(by_number.items()):
        if any(each.kind != "seen" for each in told):
            lines.append(f"{_clock(told[0].at)}  reconfiguration {number}: {outcome(told)}")
    return lines[-last:]


def outcome(told: Sequence[Decision]) -> str:
    """What was changed, or why nothing was."""
    made = [each for each in told if each.kind == "granted"]
    replicas = sum(_sign(each, AddReplica, RemoveReplica) for each in made)
    moved = sum(len(getattr(each.change, "moves", ())) for each in made)
    nodes = sum(_sign(each, AddNode, ReleaseNode) for each in made)
    parts = [_signed(replicas, "replica"), _signed(nodes, "node")]
    parts += [f"{moved} moved"] if moved else []
    words = [part for part in parts if part]
    if cancelled := [each for each in told if each.kind == "cancelled"]:
        words.append(f"cancelled, {cancelled[-1].reason}")
    if words:
        return ", ".join(words)
    verdicts = [each for each in told if each.kind in ("refused", "asked")]
    if verdicts:
        return f"{verdicts[-1].kind}: {verdicts[-1].reason}"
    return told[-1].reason if told[-1].kind == "seen" else "not decided yet"


def _sign(decision: Decision, more: type, fewer: type) -> int:
    return int(isinstance(decision.change, more)) - int(isinstance(decision.change, fewer))


def _signed(number: int, noun: str) -> str:
    return f"{number:+d} {noun}{'' if abs(number) == 1 else 's'}" if number else ""


def _line(decision: Decision, told: int) -> str:
    who = TITLES[decision.level]
    if decision.level != "infrastructure":
        who += f" of {decision.manager}"
    what = f"{VERBS[decision.kind]} {decision.change}" if decision.change else VERBS[decision.kind]
    line = f"{_clock(decision.at)}  {who} {what}: {decision.reason}"
    others = [each for each in (decision.reconfiguration, *decision.causes) if each != told]
    if others:
        line += f" [also of {', '.join(str(each) for each in others)}]"
    return line


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
