"""The pictures of a run: latency with targets, who ran on which slot, how busy stages were, what waited."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.dashboard.run_record import RunRecord
from penstock.demo.plots import plain_axes
from penstock.measure.minutes import SinkSpan
from penstock.measure.turns import KeptTurn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#CC79A7", "#009E73", "#E69F00", "#56B4E9", "#D55E00", "#8C6BB1", "#7F7F7F")
TARGET = "#444444"
TURN_SECONDS = 30.0
MOST_STAGES = 12
ACROSS = 2


def picture(draw: Callable[[Figure], None], width: float, height: float) -> bytes:
    """A PNG of what `draw` draws."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    draw(figure)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def latency(record: RunRecord) -> bytes:
    """A chart for each sink: p50, p99 and the target it had."""
    by: dict[str, list[SinkSpan]] = {}
    for span in record.spans:
        by.setdefault(f"{span.pipeline}.{span.sink}", []).append(span)
    down = -(-len(by) // ACROSS)

    def draw(figure: Figure) -> None:
        for place, (name, spans) in enumerate(by.items(), 1):
            axes = figure.add_subplot(down, ACROSS if len(by) > 1 else 1, place)
            _latency(axes, name, spans)

    return picture(draw, 10.5, 2.4 * down + 0.2)


def _latency(axes: Axes, name: str, spans: Sequence[SinkSpan]) -> None:
    times = [_days(span.end) for span in spans]
    plain_axes(axes, name)
    axes.plot(times, [span.p99 for span in spans], color=COLOURS[0], linewidth=1.8, label="p99")
    axes.plot(times, [span.p50 for span in spans], color=COLOURS[4], linewidth=1.3, label="p50")
    targets = [span.target_seconds for span in spans]
    if any(target is not None for target in targets):
        known = [float("nan") if target is None else target for target in targets]
        axes.plot(
            times, known, color=TARGET, linewidth=1.2, linestyle="--", label="target", drawstyle="steps-pre"
        )
    # Room above for the legend.
    axes.set_ylim(0, 1.25 * max(max(span.p99, span.target_seconds or 0.0, 1e-3) for span in spans))
    axes.set_ylabel("s", rotation=0, labelpad=8)
    axes.legend(fontsize=8, frameon=False, loc="upper left", ncols=3)
    _time_axis(axes)


def turns(record: RunRecord) -> bytes:
    """Who ran on which slot in the last half minute, like figure 7c of Cameo."""
    end = max(turn.at + turn.seconds for turn in record.turns)
    shown = [turn for turn in record.turns if turn.at + turn.seconds >= end - TURN_SECONDS]
    placed = in_lanes(shown)
    stages = list(dict.fromkeys(turn.stage for turn in shown))
    lanes = 1 + max(lane for _, lane in placed)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        plain_axes(axes, f"turns on each slot, the last {TURN_SECONDS:.0f} s")
        for at, stage in enumerate(stages):
            bars = [(turn.at - end, max(turn.seconds, 0.02)) for turn, _ in placed if turn.stage == stage]
            rows = [lane for turn, lane in placed if turn.stage == stage]
            colour = COLOURS[at % len(COLOURS)]
            for bar, lane in zip(bars, rows, strict=True):
                axes.broken_barh(
                    [bar], (lane + 0.1, 0.8), color=colour, hatch=HATCHES[at // len(COLOURS) % 3]
                )
            axes.plot([], [], color=colour, linewidth=6, label=stage)
        axes.set_yticks([lane + 0.5 for lane in range(lanes)], [f"slot {lane + 1}" for lane in range(lanes)])
        axes.set_xlim(-TURN_SECONDS, 0)
        axes.set_xlabel(f"seconds before {_clock(end):%H:%M:%S} UTC")
        figure.legend(loc="outside lower center", fontsize=8, frameon=False, ncols=4)

    return picture(draw, 10.5, 0.55 * lanes + 1.6 + 0.22 * (len(stages) // 4))


HATCHES = ("", "//", "..")


def in_lanes(turns: Sequence[KeptTurn]) -> list[tuple[KeptTurn, int]]:
    """Each turn with a slot that was free when it began; a turn on several slots stands on each of them.

    >>> one, two = KeptTurn("a", 0.0, 2.0, 1, 5), KeptTurn("b", 1.0, 1.0, 1, 5)
    >>> [lane for _, lane in in_lanes([one, two, KeptTurn("c", 2.0, 1.0, 2, 5)])]
    [0, 1, 0, 1]
    """
    free: list[float] = []
    placed = []
    for turn in sorted(turns, key=lambda each: each.at):
        for _ in range(turn.slots):
            lane = next((at for at, ready in enumerate(free) if ready <= turn.at + 0.002), len(free))
            free[lane : lane + 1] = [turn.at + turn.seconds]
            placed.append((turn, lane))
    return placed


def use(record: RunRecord) -> bytes:
    """Slots in use by stage, and rows that waited at the end of each minute."""
    begins = sorted({each.begin for each in record.minutes})
    known = {(each.begin, each.stage): each for each in record.minutes}
    slots = max(each.pool_slots for each in record.minutes)
    stages = _busiest(record)

    def draw(figure: Figure) -> None:
        top, below = figure.subplots(2, 1, sharex=True)
        plain_axes(top, "slots in use, by stage")
        plain_axes(below, "rows waiting at the end of each minute")
        floor = [0.0] * len(begins)
        for at, stage in enumerate(stages):
            minutes = [known.get((begin, stage)) for begin in begins]
            busy = [each.slot_share * each.pool_slots if each else 0.0 for each in minutes]
            colour = COLOURS[at % len(COLOURS)]
            shown = {"color": colour, "hatch": HATCHES[at // len(COLOURS) % 3]}
            top.bar(
                [_days(begin + 30) for begin in begins], busy, 50 / 86400, bottom=floor, label=stage, **shown
            )
            floor = [low + more for low, more in zip(floor, busy, strict=True)]
            waiting = [each.figures.rows_waiting if each else 0 for each in minutes]
            below.plot([_days(begin + 60) for begin in begins], waiting, ".-", color=colour)
        top.axhline(slots, color=TARGET, linewidth=1.2, linestyle="--")
        below.set_ylim(0, 1.1 * max(1, *(each.figures.rows_waiting for each in record.minutes)))
        _time_axis(below)
        figure.legend(loc="outside lower center", fontsize=8, frameon=False, ncols=4)

    return picture(draw, 10.5, 4.6 + 0.22 * (len(stages) // 4))


def _busiest(record: RunRecord) -> list[str]:
    taken: dict[str, float] = {}
    for each in record.minutes:
        taken[each.stage] = taken.get(each.stage, 0.0) + each.figures.slot_seconds
    return sorted(taken, key=lambda stage: -taken[stage])[:MOST_STAGES]


def _clock(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _days(at: float) -> float:
    """As matplotlib counts dates."""
    return at / 86_400


def _time_axis(axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, DateFormatter

    axes.xaxis.set_major_locator(AutoDateLocator(minticks=3, maxticks=7))  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))  # type: ignore[no-untyped-call]
    axes.tick_params(axis="x", labelsize=8)
