"""What a bench is given and what it gives back."""

from __future__ import annotations

import argparse
import operator
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from penstock.bench.stats import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MEETS = {"at least": operator.ge, "at most": operator.le, "over": operator.gt, "under": operator.lt}


@dataclass(frozen=True)
class Mark:
    """What a figure must reach."""

    bound: Literal["at least", "at most", "over", "under", "within"]
    value: float
    highest: float = 0.0
    """Where it is a range, whose least is `value`."""

    def met_by(self, figure: float) -> bool:
        """Not a number meets no mark.

        >>> at_most(50).met_by(46.0), at_least(3).met_by(2.9), at_most(50).met_by(float("nan"))
        (True, False, False)
        >>> within(0.8, 1.2).met_by(0.9), within(0.8, 1.2).met_by(1.3), under(1).met_by(1.0)
        (True, False, False)
        """
        if self.bound == "within":
            return self.value <= figure <= self.highest
        return bool(_MEETS[self.bound](figure, self.value))

    def __str__(self) -> str:
        if self.bound == "within":
            return f"{self.value:g} to {self.highest:g}"
        return f"{self.bound} {self.value:g}"


def at_least(value: float) -> Mark:
    return Mark("at least", value)


def at_most(value: float) -> Mark:
    return Mark("at most", value)


def over(value: float) -> Mark:
    return Mark("over", value)


def under(value: float) -> Mark:
    return Mark("under", value)


def within(least: float, highest: float) -> Mark:
    return Mark("within", least, highest)


@dataclass(frozen=True)
class Plot:
    """A picture: saved beside the JSON file as `<its name>-<name>.png`."""

    name: str
    draw: Callable[[Figure], object]


@dataclass(frozen=True)
class Table:
    """Rows to print under the figures; cells are text already."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass
class BenchResult:
    """The figures of one run.

    `setup` says how they came about: the settings of each side, the number of runs and the spread of
    each figure. The facts of the machine and the command are added when it is written.
    """

    bench: str
    figures: dict[str, float] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    setup: dict[str, Any] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)

    def put(self, figure: str, summary: Summary, mark: Mark | None = None) -> None:
        """Adds a figure, and its mark; spread and number of runs go into `setup`."""
        self.figures[figure] = summary.value
        self.setup.setdefault("spread", {})[figure] = [summary.low, summary.high]
        self.setup.setdefault("runs", {})[figure] = summary.runs
        if mark is not None:
            self.marks[figure] = mark

    @property
    def missed(self) -> list[str]:
        """The figures that do not reach their mark, and the marks without a figure."""
        return [
            name
            for name, mark in self.marks.items()
            if name not in self.figures or not mark.met_by(self.figures[name])
        ]


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class BenchSettings:
    """What was asked for. `options` holds the arguments that the bench added itself."""

    quick: bool
    json: Path
    options: argparse.Namespace = field(default_factory=argparse.Namespace)
    say: Callable[[str], None] = _say
    """Tells how far the bench is, one line at a time."""

    def option(self, name: str, default: Any = None) -> Any:
        return getattr(self.options, name, default)

    def described(self) -> Mapping[str, Any]:
        return {"quick": self.quick, **vars(self.options)}
