"""The workload of `penstock bench share`, simulated: what a run of it would tell.

    before: ShareRun = ...                        # a run of the side "penstock"
    expected = predicted_share(before, ShareSettings(120.0, 60.0))
    measured: ShareRun = ...                      # another one, later
    share_errors(measured, expected)              # {"urgent_p50": 0.04, "urgent_p99": 0.11, ...}

What comes back is a `ShareRun` like that of a real run, so that the very same code makes the figures of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

import numpy as np

from penstock.measure.rate_clock import RateClock
from penstock.scheduling.policies import Llf, Policy
from penstock.simulate.accuracy import compared
from penstock.simulate.arrivals import Ticks
from penstock.simulate.costs import TurnCost, fitted
from penstock.simulate.delays import Delays, SeenTurn, delays_of, shown_before
from penstock.simulate.errors import SimulationError
from penstock.simulate.plant import Inflow, Plant, StageSetup, WindowSetup
from penstock.simulate.settings import SimulationSettings
from penstock.simulate.simulation import Simulation
from penstock.simulate.spells import Part, reordered
from penstock.simulate.station import Turn
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import GROUPS, LOADS, SIDES, SLOTS, Load

USUAL = Delays(look=0.004)
"""After a second of Spark's rate source is over, an engine looks for its rows with so much delay at least."""
EPOCH = 1_700_000_000
START_SECONDS = 5.0
"""In which the sources of a run are created, where nothing else is said."""


@dataclass(frozen=True)
class ShareSettings:
    """How long it runs and under which policy; `created` are the moments at which sources were."""

    seconds: float
    """Measured, after the warm-up."""
    warmup_seconds: float
    policy: Policy = Llf()  # noqa: RUF009 -- frozen
    slots: int = SLOTS
    seed: int = 0
    created: Mapping[str, float] | None = None
    """By pipeline, in epoch seconds; by chance where that is not known."""
    delays: Delays = USUAL


def simulated_share(
    costs: Mapping[str, TurnCost], settings: ShareSettings, loads: Sequence[Load] = LOADS
) -> ShareRun:
    """A run of the pipelines; `costs` by pipeline, or by group for those that are not named."""
    created = settings.created or _created(loads, settings.seed)
    base = floor(min(created.values()) / 10.0) * 10
    clocks = {load.name: RateClock(round(created[load.name] * 1000), load.rows_per_second) for load in loads}
    run = ShareRun(SIDES["penstock"], settings.warmup_seconds, loads)
    started = max(created.values())
    for load in loads:
        run.take({"event": "source", "pipeline": load.name, "created_ms": clocks[load.name].created_ms})
    run.take({"event": "started", "at": started})
    until = started + settings.warmup_seconds + settings.seconds
    delays = settings.delays
    teller = _Teller(run, clocks, base, delays)
    plant = Plant(
        tuple(_stage(load, _cost(costs, load).since(base).after(delays.free)) for load in loads),
        tuple(_inflow(load, clocks[load.name], base, delays.look) for load in loads),
    )
    chosen = SimulationSettings.on_slots(
        settings.policy, settings.slots, seed=settings.seed, on_turn=teller.tell
    )
    Simulation(plant, chosen).run(until - base)
    run.take({"event": "ended", "at": until})
    return run


class _Teller:
    """Tells a run of each turn, as a worker does."""

    def __init__(self, run: ShareRun, clocks: Mapping[str, RateClock], base: float, delays: Delays):
        self._run = run
        self._loads = {load.name: load for load in run.loads}
        self._clocks = clocks
        self._base = base
        self._delays = delays
        self._rows = dict.fromkeys(self._loads, 0)

    def tell(self, turn: Turn) -> None:
        name = turn.station.setup.pipeline
        load, rows = self._loads[name], turn.taken.rows.count
        self._rows[name] += rows
        ends = [self._base + end for end in turn.windows]
        ended = self._base + turn.ends_at - self._delays.free
        granted = self._base + turn.grant.at
        wanted = [self._clocks[name].rows_in(end, load.window_seconds) or 0 for end in ends]
        self._run.take(
            {
                "event": "batch",
                "pipeline": name,
                "at": ended - self._delays.shown,
                "seconds_read": self._rows[name] // load.rows_per_second,
                "windows": list(zip(ends, wanted, strict=True)),
            }
        )
        told = {"granted_at": granted, "rows": rows, "slots": turn.grant.slots}
        self._run.take({"event": "turn", "pipeline": name, "seconds": ended - granted, **told})


def _stage(load: Load, cost: TurnCost) -> StageSetup:
    return StageSetup(
        load.name,
        load.name,
        cost,
        (f"{load.name}.source",),
        sink="sink",
        latency_seconds=load.target_seconds,
        target_seconds=load.target_seconds,
        selectivity=1.0 / (load.rows_per_second * load.window_seconds),
        window=WindowSetup(float(load.window_seconds), float(load.window_seconds)),
        profiled_rows=load.rows_per_second,
        native=True,
    )


def _inflow(load: Load, clock: RateClock, base: float, look_seconds: float) -> Inflow:
    """Rows of each second come when it is over, and are seen a moment later."""
    phase = clock.created_ms / 1000 - base + look_seconds
    lag = look_seconds - clock.last_event_ms(0) / 1000 + clock.created_ms / 1000
    return Inflow(f"{load.name}.source", Ticks(float(load.rows_per_second), 1.0, phase), "rate", lag)


def _cost(costs: Mapping[str, TurnCost], load: Load) -> TurnCost:
    cost = costs.get(load.name) or costs.get(load.group)
    if cost is None:
        raise SimulationError(
            f"pipeline {load.name!r} must have a cost, of its own or of its group, got {sorted(costs)}: "
            "its turns would take no time"
        )
    return cost


def _created(loads: Sequence[Load], seed: int) -> dict[str, float]:
    chance = np.random.default_rng([seed, len(loads)])
    return {load.name: EPOCH + START_SECONDS * float(chance.random()) for load in loads}


def costs_of(run: ShareRun) -> dict[str, TurnCost]:
    """What the turns of a run cost after its warm-up, by pipeline; those without rows are left out.

    What made turns slow is met again at its moment, that of the warm-up too: it leaves rows behind.
    """
    found = {}
    for load in run.loads:
        turns = [turn for turn in run.turns(load) if turn.rows]
        warm = [turn for turn in turns if turn.granted_at >= run.measured_from]
        if warm:
            cost = fitted((turn.rows, turn.slots, turn.seconds) for turn in warm)
            found[load.name] = cost.meeting(
                ((turn.granted_at, turn.rows, turn.slots, turn.seconds) for turn in turns),
                run.windows_at(load),
            )
    return found


def delays_in(run: ShareRun) -> Delays:
    """What passed between the turns of a run after its warm-up, and between rows that came and turns."""
    turns = [
        SeenTurn(load.name, turn.granted_at, turn.granted_at + turn.seconds)
        for load in run.loads
        for turn in run.turns(load)
    ]
    came, begin = {name: _seconds_of(at, turns) for name, at in created_of(run).items()}, run.measured_from
    shown = {load.name: run.results_at(load) for load in run.loads}
    counted = [turn for turn in turns if turn.granted_at >= begin]
    found = delays_of(turns, came, begin)
    return replace(found, look=found.look or USUAL.look, shown=shown_before(counted, shown))


def _seconds_of(created_at: float, turns: Sequence[SeenTurn]) -> list[float]:
    """When the seconds of a rate source are over, up to the last grant."""
    last = max((turn.granted_at for turn in turns), default=created_at)
    return [created_at + second for second in range(1, ceil(last - created_at) + 1)]


def created_of(run: ShareRun) -> dict[str, float]:
    """When the sources of a run were created, where that is known of all of them; else nothing."""
    known = {load.name: run.created_at(load) for load in run.loads}
    return {name: at for name, at in known.items() if at is not None} if None not in known.values() else {}


def predicted_share(before: ShareRun, settings: ShareSettings) -> ShareRun:
    """A run that nobody has seen, from all that another one has shown: costs, slow spells and delays.

    Of the run itself nothing is known but what is declared; when its sources are created is chance.
    """
    created = settings.created or _created(before.loads, settings.seed)
    begin = max(created.values()) + settings.warmup_seconds
    wanted = Part(begin, begin + settings.seconds)
    costs = reordered(costs_of(before), measured_part(before), wanted, settings.seed)
    known = replace(settings, created=created, delays=delays_in(before))
    return simulated_share(costs, known, before.loads)


def replayed_share(measured: ShareRun, seed: int = 0) -> ShareRun:
    """A measured run once more, whose turns are as slow at each moment as they were."""
    settings = ShareSettings(
        measured_part(measured).seconds,
        measured.warmup_seconds,
        seed=seed,
        created=created_of(measured) or None,
        delays=delays_in(measured),
    )
    return simulated_share(costs_of(measured), settings, measured.loads)


def measured_part(run: ShareRun) -> Part:
    """From the end of its warm-up to its own; refuses a run that goes on."""
    if run.ended_at is None:
        raise SimulationError("a run must have ended to be simulated, got one that has not: its end is open")
    return Part(run.measured_from, run.ended_at)


def latencies_in(run: ShareRun) -> dict[str, list[float]]:
    """Seconds of each result, by group."""
    return {group: run.group(group).latencies for group in GROUPS}


def share_errors(measured: ShareRun, *expected: ShareRun) -> dict[str, float]:
    """By how much p50 and p99 of both groups differ, as shares of what was measured."""
    told = compared(latencies_in(measured), *map(latencies_in, expected))
    return {each.name: each.error for each in told}
