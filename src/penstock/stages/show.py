"""A stage graph to look at: as text, for Mermaid, for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.pipeline.latency import format_seconds
from penstock.pipeline.nodes import Source
from penstock.stages.stage import Stage, StageGraph


def text(graph: StageGraph) -> str:
    """A tree from each source to its sinks; a stage with several inputs is shown whole once."""
    lines = [f"pipeline {graph.pipeline}, version {graph.version}"]
    shown: set[str] = set()
    for source, stages in _sources(graph):
        lines.append(f"source {source.name}")
        lines += _branches(graph, [(stage, "") for stage in stages], "", shown)
    return "\n".join(lines)


def mermaid(graph: StageGraph) -> str:
    """A Mermaid flowchart: stages as boxes, sources and sinks rounded, queues on the arrows."""
    lines = ["flowchart LR"]
    for identity, label, ending in _shapes(graph):
        left, right = ("([", "])") if ending else ("[", "]")
        lines.append(f'    {identity}{left}"{_mermaid_label(label)}"{right}')
    for start, end, label, back in _arrows(graph):
        arrow = "-.->" if back else "-->"
        lines.append(f"    {start} {arrow}" + (f'|"{_mermaid_label(label)}"| ' if label else " ") + end)
    return "\n".join(lines)


def graphviz(graph: StageGraph) -> str:
    """The same for `dot`; the return of a loop is dashed and does not order the drawing."""
    lines = [f"digraph {_dot_string(graph.pipeline)} {{", "    rankdir=LR;"]
    for identity, label, ending in _shapes(graph):
        shape = "ellipse" if ending else "box"
        lines.append(f"    {identity} [shape={shape}, label={_dot_string(label)}];")
    for start, end, label, back in _arrows(graph):
        looks = ", style=dashed, constraint=false" if back else ""
        lines.append(f"    {start} -> {end} [label={_dot_string(label)}{looks}];")
    return "\n".join([*lines, "}"])


def _sources(graph: StageGraph) -> Iterator[tuple[Source, tuple[Stage, ...]]]:
    for queue in graph.queues.values():
        if queue.source is not None:
            yield queue.source, graph.consumers_of(queue.name)
    for stage in graph.stages:
        if stage.native is not None:
            yield stage.native, (stage,)


def _branches(
    graph: StageGraph, branches: list[tuple[Stage, str]], indent: str, shown: set[str]
) -> list[str]:
    lines = []
    for at, (stage, by_loop) in enumerate(branches):
        last = at == len(branches) - 1
        knot, deeper = ("└─ ", "   ") if last else ("├─ ", "│  ")
        known = by_loop or (" (above)" if stage.name in shown else "")
        lines.append(f"{indent}{knot}{stage.name}{known}" if known else f"{indent}{knot}{_summary(stage)}")
        if not known:
            shown.add(stage.name)
            lines += _branches(graph, _next(graph, stage), indent + deeper, shown)
    return lines


def _next(graph: StageGraph, stage: Stage) -> list[tuple[Stage, str]]:
    forward = graph.below(stage, loops=False)
    return [(each, "" if each in forward else " (by loop)") for each in graph.below(stage)]


def _summary(stage: Stage) -> str:
    steps = [operator.name for operator in stage.operators]
    steps += [f"sink {stage.sink.name}"] if stage.sink else []
    target = (
        "no target" if stage.latency_seconds is None else f"target {format_seconds(stage.latency_seconds)}"
    )
    parts = [f"{stage.name}: {' > '.join(steps) or 'source only'}", target]
    parts += ["state"] if stage.stateful else []
    parts += [f"parallelism {stage.parallelism}"] if stage.parallelism > 1 else []
    parts += [f"dead letters to {queue}" for queue in stage.dead_letters.values()]
    return ", ".join(parts)


def _shapes(graph: StageGraph) -> Iterator[tuple[str, str, bool]]:
    """Identity, label and whether it is an end of the pipeline."""
    for at, (source, _) in enumerate(_sources(graph)):
        yield f"source{at}", source.name, True
    for at, stage in enumerate(graph.stages):
        yield f"stage{at}", "\n".join([stage.name, *(operator.name for operator in stage.operators)]), False
        if stage.sink is not None:
            target = stage.sink.latency_seconds
            within = "" if target is None else f"\nwithin {format_seconds(target)}"
            yield f"sink{at}", stage.sink.name + within, True


def _arrows(graph: StageGraph) -> Iterator[tuple[str, str, str, bool]]:
    """Start, end, label (the queue) and whether it is the return of a loop."""
    identity = {stage.name: f"stage{at}" for at, stage in enumerate(graph.stages)}
    for at, (source, stages) in enumerate(_sources(graph)):
        for stage in stages:
            yield (
                f"source{at}",
                identity[stage.name],
                "" if stage.native else _source_queue(graph, source),
                False,
            )
    for stage in graph.stages:
        forward = graph.below(stage, loops=False)
        for below in graph.below(stage):
            yield identity[stage.name], identity[below.name], stage.output or "", below not in forward
        if stage.sink is not None:
            yield identity[stage.name], identity[stage.name].replace("stage", "sink"), "", False


def _source_queue(graph: StageGraph, source: Source) -> str:
    """The name of the queue that a source fills."""
    return f"{graph.pipeline}.{source.name}"


def _mermaid_label(label: str) -> str:
    return label.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace("\n", "<br>")


def _dot_string(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
