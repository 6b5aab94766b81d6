"""The workload of `penstock bench tenants`, simulated: when each window's result would be at its sink.

    costs = {each.job.name: fitted(turns).meeting(turns_with_moments) for each in measured.jobs}
    settings = TenantsSettings(policy, measured.warmup, measured.measured)
    expected = simulated_tenants(load.jobs, costs, settings)
    expected.latencies("urgent-1")                                            # as `JobRun.latencies`

Each job is one stage, its query fused, fed with the very messages of the bench.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.scheduling.policies import Policy
from penstock.simulate.arrivals import Trace
from penstock.simulate.costs import TurnCost
from penstock.simulate.delays import Delays
from penstock.simulate.errors import SimulationError
from penstock.simulate.plant import Inflow, Plant, StageSetup, WindowSetup
from penstock.simulate.settings import SimulationSettings
from penstock.simulate.simulation import Simulation
from penstock.simulate.station import Turn
from penstock.workloads.tenants.arrivals import Message, completed_at, in_ticks, messages_of
from penstock.workloads.tenants.events import MICROS, last_micros
from penstock.workloads.tenants.groups import Job

SLOTS = 2
NONE = Delays()


@dataclass(frozen=True)
class TenantsSettings:
    """How the jobs are scheduled, and for how long; seconds of a warm-up, and measured after it."""

    policy: Policy
    warmup_seconds: float
    measured_seconds: float
    slots: int = SLOTS
    seed: int = 0
    delays: Delays = NONE
    fed: Mapping[str, Sequence[tuple[float, int, float]]] = field(default_factory=dict, repr=False)
    """By job, of each message: when it was due, its source, and when it was fed, where that was measured."""

    @property
    def end(self) -> float:
        return self.warmup_seconds + self.measured_seconds


@dataclass(frozen=True)
class TenantsRun:
    """What came when; all times are seconds since the run began."""

    settings: TenantsSettings
    jobs: Mapping[str, Job]
    messages: Mapping[str, Sequence[Message]]
    came: Mapping[str, Mapping[float, float]]
    """By job and end of a window, when its result was at the sink."""

    def samples(self, name: str) -> list[tuple[float, float, bool]]:
        """(second of the run, latency, missing) of each window completed in the measured part.

        A result that is not there at the end counts with the time until then, as in the bench.
        """
        job, begin, end = self.jobs[name], self.settings.warmup_seconds, self.settings.end
        moments = completed_at(self.messages[name], job.window_seconds, job.slide_seconds)
        found = []
        for window, completed in moments.items():
            if begin <= completed < end:
                at = self.came[name].get(window, float("inf"))
                found.append((completed, max(min(at, end) - completed, 0.0), at > end))
        return found

    def latencies(self, name: str) -> list[float]:
        return [latency for _, latency, _ in self.samples(name)]


def simulated_tenants(
    jobs: Sequence[Job], costs: Mapping[str, TurnCost], settings: TenantsSettings
) -> TenantsRun:
    """A run of these jobs; `costs` by job, or by group for those that are not named."""
    messages = {job.name: in_ticks(messages_of(job, settings.end)) for job in jobs}
    came: dict[str, dict[float, float]] = {job.name: {} for job in jobs}

    delays = settings.delays

    def tell(turn: Turn) -> None:
        for end in turn.windows:
            at = turn.ends_at - delays.free - delays.shown
            came[turn.station.setup.pipeline].setdefault(end, at)

    plant = Plant(
        tuple(_stage(job, costs, delays) for job in jobs),
        tuple(flow for job in jobs for flow in _inflows(job, messages[job.name], settings)),
    )
    chosen = SimulationSettings.on_slots(settings.policy, settings.slots, seed=settings.seed, on_turn=tell)
    Simulation(plant, chosen).run(settings.end)
    return TenantsRun(settings, {job.name: job for job in jobs}, messages, came)


def _stage(job: Job, costs: Mapping[str, TurnCost], delays: Delays) -> StageSetup:
    cost = costs.get(job.name) or costs.get(job.group)
    if cost is None:
        raise SimulationError(
            f"job {job.name!r} must have a cost, of its own or of its group, got {sorted(costs)}: "
            "its turns would take no time"
        )
    return StageSetup(
        f"{job.name}.query",
        job.name,
        cost.after(delays.free),
        (f"{job.name}.events",),
        sink="results",
        latency_seconds=job.target_seconds,
        target_seconds=job.target_seconds,
        selectivity=1.0 / max(job.rows_per_second * job.slide_seconds, 1.0),
        window=WindowSetup(job.window_seconds, job.slide_seconds),
        tenant=job.name,
        share=job.share,
        profiled_rows=max(round(job.rows_per_second), 1),
    )


def _inflows(job: Job, messages: Sequence[Message], settings: TenantsSettings) -> list[Inflow]:
    """One for each source; what it sends carries the event times of the bench."""
    fed = {(due, source): at for due, source, at in settings.fed.get(job.name, ())}
    found = []
    for source in range(job.sources):
        own = [each for each in messages if each.source == source]
        if own:
            seen = [fed.get((each.due, source), each.due) + settings.delays.look for each in own]
            trace = Trace(tuple(seen), tuple(float(each.rows) for each in own))
            events = tuple(last_micros(each.rows, each.begin, each.end) / MICROS for each in own)
            late = tuple(at - each.due for at, each in zip(seen, own, strict=True))
            found.append(Inflow(f"{job.name}.events", trace, f"s{source}", events=events, late=late))
    return found
