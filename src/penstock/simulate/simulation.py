"""The simulation: the engine's own scheduler on slots, turns and arrivals that take no time.

Everything that happens is ordered by (time, priority, sequence); all that happens at one moment is known
before anything is decided. Two runs of one seed are the same, and arrivals are the same under every policy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import inf
from typing import Protocol

import numpy as np

from penstock.scheduling.consumption import All, Consumption
from penstock.scheduling.decisions import Grant
from penstock.scheduling.policies import (
    ContextPolicy,
    Fifo,
    Llf,
    LongestQueue,
    MinLatency,
    MinMemory,
    Policy,
    Random,
)
from penstock.scheduling.scheduler import Scheduler
from penstock.simulate.agenda import LOOK, NODE_CHANGES, ROWS_COME, TURN_ENDS, Agenda
from penstock.simulate.costs import Chance
from penstock.simulate.errors import SimulationError
from penstock.simulate.feeding import Feed
from penstock.simulate.inbox import Inbox, Messages, Parcel, Runs
from penstock.simulate.nodes import Node, SlotMap, checked, pool_of
from penstock.simulate.outcome import Latencies, Outcome, SinkOutcome, StageOutcome
from penstock.simulate.plant import Plant, StageSetup
from penstock.simulate.station import Station, Turn

WITHOUT_CONTEXTS = (Fifo, LongestQueue, MinLatency, MinMemory, Random)
"""Policies that look at no context, so that none need be made for them."""
WITHOUT_ROWS = (Fifo, MinLatency, MinMemory)
"""Policies whose order does not hang on how many rows wait."""
_ALL = All()
GRAIN_SECONDS, PATIENCE_SECONDS = 1.0, 30.0
"""As an engine has them."""


class Control(Protocol):
    """Looks at a simulation now and then, and may change it: a planner, a controller of slots."""

    every_seconds: float

    def look(self, simulation: Simulation, now: float) -> None: ...

    def turn_ended(self, simulation: Simulation, turn: Turn, now: float) -> None: ...


@dataclass(frozen=True)
class SimulationSettings:
    """How it is scheduled, on what, and the seed of all chance."""

    policy: Policy
    nodes: tuple[Node, ...]
    consumption: Consumption = _ALL
    grain_seconds: float = GRAIN_SECONDS
    patience_seconds: float = PATIENCE_SECONDS
    seed: int = 0
    controls: tuple[Control, ...] = ()
    on_turn: Callable[[Turn], None] | None = None

    @classmethod
    def on_slots(cls, policy: Policy, slots: int, **others: object) -> SimulationSettings:
        """One node with so many slots, which stays."""
        return replace(cls(policy, pool_of(slots)), **others)  # type: ignore[arg-type]


class Simulation:
    """One run of a plant.

    >>> from penstock.simulate import Inflow, Plant, StageSetup, Ticks, TurnCost
    >>> stage = StageSetup("s", "p", TurnCost(0.05), ("in",), sink="out")
    >>> settings = SimulationSettings.on_slots(Fifo(), 1)
    >>> outcome = Simulation(Plant((stage,), (Inflow("in", Ticks(100.0)),)), settings).run(60.0)
    >>> round(outcome.sinks["p.out"].latency.quantile(0.5), 3), round(outcome.slots_busy, 2)
    (0.05, 0.5)
    """

    def __init__(self, plant: Plant, settings: SimulationSettings):
        plant.rates  # noqa: B018 -- refuses a loop that never ends
        self.plant = plant
        self.settings = settings
        self._nodes = checked(settings.nodes)
        self._contexts = not isinstance(settings.policy, WITHOUT_CONTEXTS)
        self._lazy = isinstance(settings.policy, WITHOUT_ROWS)
        self._steep = not isinstance(settings.policy, (Fifo, LongestQueue, MinLatency, Random))
        policy = settings.policy
        if isinstance(policy, Random):
            policy = replace(policy, seed=settings.seed)
        self._slot_map = SlotMap()
        for node in self._nodes:
            if node.joins_at <= 0.0:
                self._slot_map.join(node)
        self.scheduler = Scheduler(
            policy,
            self._slot_map.total,
            settings.consumption,
            patience_seconds=settings.patience_seconds,
            grain_seconds=settings.grain_seconds,
        )
        self.stations = {stage.name: self._station(stage) for stage in plant.stages}
        self._by_lane: dict[str, Station] = {}
        self._link()
        self.latencies = {f"{each.pipeline}.{each.sink}": Latencies() for each in plant.stages if each.sink}
        self._agenda = Agenda()
        self._feeds: list[Feed] = []
        self._feeds_of: dict[str, list[int]] = {stage.name: [] for stage in plant.stages}
        self._coming: list[tuple[float, int]] = []
        self._touched: dict[Station, None] = {}
        self._look_again_at = inf
        self._measured_from = 0.0
        self._slot_seconds = 0.0
        self._slots_since = 0.0
        self.events = 0
        self.turns = 0

    def _station(self, setup: StageSetup) -> Station:
        timed = any(queue in self.plant.timed_queues for queue in setup.inputs)
        inbox: Inbox = Runs()
        if timed or self._contexts:
            inbox = Messages(setup, self.context_policy, self._producers(setup))
        return Station(setup, inbox, Chance(setup.cost.scv, self._generator("turns", setup.name)))

    @property
    def context_policy(self) -> ContextPolicy:
        """The policy by which contexts are made; where turns go by another, they still tell deadlines."""
        policy = self.settings.policy
        return policy if isinstance(policy, ContextPolicy) else Llf()

    def _producers(self, setup: StageSetup) -> int:
        """How many sources a stage waits for before it has a frontier; a loop is not waited for."""
        stages = self.plant.stages
        places = {stage.name: place for place, stage in enumerate(stages)} if setup.window else {}
        before = (
            sum(
                stage.output in setup.inputs and places.get(stage.name, 0) < places.get(setup.name, 0)
                for stage in stages
            )
            if setup.window
            else 0
        )
        return before + sum(inflow.queue in setup.inputs for inflow in self.plant.inflows)

    def _generator(self, what: str, name: str) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed, zlib.crc32(f"{what}|{name}".encode())])

    def _link(self) -> None:
        """Lets stages know whom they reply to, loops aside."""
        seen: set[str] = set()
        for setup in self.plant.stages:
            seen.add(setup.name)
            for below in self.plant.below(setup):
                if below.name not in seen:
                    self.stations[below.name].above.append(self.stations[setup.name])

    def run(self, seconds: float, warmup_seconds: float = 0.0) -> Outcome:
        """So many seconds, of which the first do not count."""
        if not 0.0 <= warmup_seconds < seconds < inf:
            raise SimulationError(
                f"a simulation must last longer than its warm-up, got {seconds:g} s with "
                f"{warmup_seconds:g} s of warm-up: nothing would be measured"
            )
        self._measured_from = self._slots_since = warmup_seconds
        self._prepare(seconds)
        while (now := min(self._agenda.next_at, self._coming[0][0] if self._coming else inf)) <= seconds:
            self._happen(now)
            self._decide(now)
        return self._outcome(seconds, warmup_seconds)

    def _prepare(self, end: float) -> None:
        for number, inflow in enumerate(self.plant.inflows):
            stations = [self.stations[each.name] for each in self.plant.readers[inflow.queue]]
            chance = self._generator("rows", f"{inflow.queue}|{inflow.producer}|{number}")
            timed = inflow.queue in self.plant.timed_queues
            self._feeds.append(Feed(inflow, stations, chance, end, timed))
            for station in stations:
                self._feeds_of[station.name].append(number)
        self._coming = [
            (feed.next_at, number) for number, feed in enumerate(self._feeds) if feed.next_at < inf
        ]
        heapify(self._coming)
        for node in self._nodes:
            if node.joins_at > 0.0:
                self._agenda.add(node.joins_at, NODE_CHANGES, node)
            if node.leaves_at < inf:
                self._agenda.add(node.leaves_at, NODE_CHANGES, node)
        for control in self.settings.controls:
            self._agenda.add(control.every_seconds, LOOK, control)

    def _happen(self, now: float) -> None:
        """All that happens at this moment."""
        agenda, coming = self._agenda, self._coming
        while True:
            next_rows = coming[0][0] if coming else inf
            time, priority = agenda.next_order
            if time > now and next_rows > now:
                return
            if next_rows <= now and (time > now or priority > ROWS_COME):
                self._rows_come(now)
                continue
            _, thing = agenda.pop()
            if isinstance(thing, Turn):
                self._turn_ends(thing, now)
            elif isinstance(thing, Node):
                self._node_changes(thing, now)
            elif thing is self:
                self._look_again_at = inf
            else:
                self._controlled(thing, now)  # type: ignore[arg-type]

    def _rows_come(self, now: float) -> None:
        """Rows of one inflow come, unless nobody could do anything about them yet."""
        _, number = heappop(self._coming)
        feed = self._feeds[number]
        if all(self._sleeps(station) for station in feed.stations):
            feed.asleep = True
            return
        self._fetch(feed, now)
        self._watch(feed, number)

    def _watch(self, feed: Feed, number: int) -> None:
        feed.asleep = False
        if feed.next_at < inf:
            heappush(self._coming, (feed.next_at, number))

    def _sleeps(self, station: Station) -> bool:
        """Rows that come while it is in a turn matter at its end, and where order does not hang on them,
        rows that come while it waits matter when it is first in line."""
        return not station.is_idle or (self._lazy and station.waits_as != "")

    def _fetch(self, feed: Feed, now: float) -> bool:
        """Whether rows have come by now; they are in their queues then."""
        came = feed.come(now)
        if came:
            self.events += came
            for station in feed.stations:
                self._touched[station] = None
        return came > 0

    def _catch_up(self, station: Station, now: float) -> None:
        """Takes in what has come unseen."""
        for number in self._feeds_of[station.name]:
            feed = self._feeds[number]
            if feed.asleep:
                self._fetch(feed, now)

    def _wake(self, station: Station) -> None:
        """The next rows for it must be told of."""
        for number in self._feeds_of[station.name]:
            feed = self._feeds[number]
            if feed.asleep:
                self._watch(feed, number)

    def _turn_ends(self, turn: Turn, now: float) -> None:
        if turn.broken:
            return
        station = turn.station
        self.scheduler.finished(turn.grant.stage, now)
        self._slot_map.release(turn.places)
        station.end(turn, self._measured_from)
        self._catch_up(station, now)
        self.turns += 1
        self.events += 1
        if turn.result is not None:
            self._deliver(station.setup, turn.result, now)
        self._touched[station] = None
        if self.settings.on_turn is not None:
            self.settings.on_turn(turn)
        for control in self.settings.controls:
            control.turn_ended(self, turn, now)

    def _deliver(self, setup: StageSetup, result: Parcel, now: float) -> None:
        self.events += 1
        if setup.sink is not None and now >= self._measured_from:
            self.latencies[f"{setup.pipeline}.{setup.sink}"].add(result.rows, now)
        if setup.output is not None:
            result.rows = result.rows.thinned()
            for reader in self.plant.readers.get(setup.output, ()):
                station = self.stations[reader.name]
                station.inbox.put(result)
                self._touched[station] = None

    def _node_changes(self, node: Node, now: float) -> None:
        self._count_slots(now)
        if now < node.leaves_at:
            self._slot_map.join(node)
        else:
            self._slot_map.leave(node)
            if node.crashes:
                self._break_off(node, now)
        self.scheduler.resize(self._slot_map.total)

    def _break_off(self, node: Node, now: float) -> None:
        """The turns that run on it are over, and their rows wait again."""
        for station in self.stations.values():
            for turn in tuple(station.running.values()):
                if node.name in turn.places:
                    self.scheduler.finished(turn.grant.stage, now)
                    station.count_slots(turn.grant, now, self._measured_from)
                    station.break_off(turn)
                    self._catch_up(station, now)
                    self._slot_map.release(turn.places)
                    self._touched[station] = None

    def _count_slots(self, now: float) -> None:
        self._slot_seconds += self._slot_map.total * max(now - self._slots_since, 0.0)
        self._slots_since = max(now, self._slots_since)

    def _controlled(self, control: Control, now: float) -> None:
        for station in self.stations.values():
            self._catch_up(station, now)
        control.look(self, now)
        self._agenda.add(now + control.every_seconds, LOOK, control)

    def look_at(self, stations: Sequence[Station]) -> None:
        """Something about these stages has changed: they are looked at before the next decision."""
        self._touched.update(dict.fromkeys(stations))

    def _decide(self, now: float) -> None:
        """Grants turns until the scheduler holds, as a dispatcher does."""
        scheduler = self.scheduler
        while scheduler.free_slots:
            self._look_at_touched(now)
            if not scheduler.stages_waiting:
                return
            if self._lazy:
                self._catch_up(self._by_lane[scheduler.upcoming], now)
                self._look_at_touched(now)
            decision = scheduler.next(now)
            if not isinstance(decision, Grant):
                if decision.until < self._look_again_at:
                    self._look_again_at = decision.until
                    self._agenda.add(max(decision.until, now), LOOK, self)
                return
            self._begin(decision)

    def _look_at_touched(self, now: float) -> None:
        if self._touched:
            touched, self._touched = self._touched, {}
            for station in touched:
                self._look(station, now)

    def _look(self, station: Station, now: float) -> None:
        if station.may_wait:
            lane = station.next_lane
            if station.waits_as and station.waits_as != lane:
                self.scheduler.withdraw(station.waits_as)
            steepness = self.plant.steepness[station.name] if self._steep else 0.0
            view = station.view(now, self.settings.grain_seconds, steepness, self._contexts)
            station.waits_as = lane
            if not self._lazy:
                self._wake(station)
            self._by_lane[lane] = station
            if self._contexts and station.setup.window is not None:
                self.scheduler.expect(station.name, None)
            self.scheduler.wait(view)
        elif station.running and not station.setup.lanes:
            return
        else:
            if station.waits_as:
                self.scheduler.withdraw(station.waits_as)
                station.waits_as = ""
            self._wake(station)
            if self._contexts and station.setup.window is not None:
                self.scheduler.expect(station.name, station.expected_start(now))

    def _begin(self, grant: Grant) -> None:
        station = self._by_lane[grant.stage]
        turn = station.begin(grant, self._slot_map.place(grant.slots))
        self.events += 1
        self._agenda.add(turn.ends_at, TURN_ENDS, turn)
        if station.may_wait:
            self._touched[station] = None

    def _outcome(self, end: float, warmup_seconds: float) -> Outcome:
        self._count_slots(end)
        for station in self.stations.values():
            for turn in station.running.values():
                station.count_slots(turn.grant, end, self._measured_from)
        outside = sum(inflow.arrivals.rows_per_second for inflow in self.plant.inflows)
        waiting = sum(station.inbox.rows_waiting for station in self.stations.values())
        busy = sum(station.slot_seconds for station in self.stations.values())
        return Outcome(
            seconds=end - warmup_seconds,
            sinks={
                f"{each.pipeline}.{each.sink}": SinkOutcome(
                    each.pipeline,
                    each.sink,
                    each.target_seconds,
                    self.latencies[f"{each.pipeline}.{each.sink}"].histogram,
                )
                for each in self.plant.stages
                if each.sink is not None
            },
            stages={name: _told(station) for name, station in self.stations.items()},
            slots_busy=busy / self._slot_seconds if self._slot_seconds else 0.0,
            events=self.events,
            turns=self.turns,
            backlog_seconds=waiting / outside if outside else 0.0,
        )


def _told(station: Station) -> StageOutcome:
    return StageOutcome(
        station.name,
        station.turns,
        station.rows_in,
        station.rows_out,
        station.inbox.rows_waiting,
        station.slot_seconds,
        station.lanes if station.setup.lanes else station.slots,
    )
