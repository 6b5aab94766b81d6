"""`penstock graph`: the stages and queues of a file's pipelines, without starting Spark."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.cli.pipeline_file import load_pipelines
from penstock.stages import show
from penstock.stages.fuse import cut
from penstock.stages.stage import StageGraph

FORMATS: Mapping[str, Callable[[StageGraph], str]] = {
    "text": show.text,
    "mermaid": show.mermaid,
    "graphviz": show.graphviz,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.py", help="declares the pipelines")
    parser.add_argument("--format", choices=sorted(FORMATS), default="text", help="default: %(default)s")


def run(args: argparse.Namespace) -> int:
    drawn = [FORMATS[args.format](cut(pipeline)) for pipeline in load_pipelines(args.file)]
    print("\n\n".join(drawn))
    return 0
