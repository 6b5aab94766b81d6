"""The simulation: the engine's own scheduler on slots, turns and arrivals that take no time.

Everything that happens is ordered by (time, priority, sequence); all that happens at one moment is known
before anything is decided. Two runs of one seed are the same, and arrivals are the same under every policy.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from penstock.scheduling.decisions import Grant
from penstock.scheduling.policies import ContextPolicy, Llf, MinMemory, Random
from penstock.scheduling.redraw import redraw
from penstock.scheduling.scheduler import Scheduler
from penstock.simulate.agenda import LOOK, NODE_CHANGES, ROWS_COME, TURN_ENDS, Agenda
from penstock.simulate.costs import Chance
from penstock.simulate.errors import SimulationError
from penstock.simulate.feeding import Feed, Supply
from penstock.simulate.inbox import Inbox, Messages, Parcel, Runs
from penstock.simulate.nodes import Node, SlotMap, checked
from penstock.simulate.outcome import Latencies, Outcome, backlog_seconds, sink_outcomes, stage_outcome
from penstock.simulate.plant import Plant, StageSetup
from penstock.simulate.settings import WITHOUT_CONTEXTS, WITHOUT_ROWS, Control, SimulationSettings
from penstock.simulate.station import Station, Turn


class Simulation:
    """One run of a plant.

    >>> from penstock.scheduling import Fifo
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
        self._contexts = type(settings.policy) not in WITHOUT_CONTEXTS
        self._lazy = type(settings.policy) in WITHOUT_ROWS
        self._steep = self._contexts or isinstance(settings.policy, MinMemory)
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
        self._touched: dict[Station, None] = {}
        self._supply = Supply(self._lazy, self._touch)
        self._look_again_at = inf
        self._measured_from = 0.0
        self.events = 0
        self.turns = 0

    def _station(self, setup: StageSetup) -> Station:
        timed = any(queue in self.plant.timed_queues for queue in setup.inputs)
        inbox: Inbox = Runs()
        if timed or self._contexts:
            inbox = Messages(setup, self.context_policy, self.plant.producers(setup))
        return Station(setup, inbox, Chance(setup.cost, self._generator("turns", setup.name)))

    @property
    def context_policy(self) -> ContextPolicy:
        """The policy by which contexts are made; where turns go by another, they still tell deadlines."""
        policy = self.settings.policy
        return policy if isinstance(policy, ContextPolicy) else Llf()

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
        self._measured_from = warmup_seconds
        self._slot_map.count_from(warmup_seconds)
        self._prepare(seconds)
        while (now := min(self._agenda.next_at, self._supply.next_at)) <= seconds:
            self._happen(now)
            self._decide(now)
        return self._outcome(seconds, warmup_seconds)

    def _prepare(self, end: float) -> None:
        for number, inflow in enumerate(self.plant.inflows):
            stations = [self.stations[each.name] for each in self.plant.readers[inflow.queue]]
            chance = self._generator("rows", f"{inflow.queue}|{inflow.producer}|{number}")
            timed = inflow.queue in self.plant.timed_queues
            self._supply.add(Feed(inflow, stations, chance, end, timed))
        for node in self._nodes:
            if node.joins_at > 0.0:
                self._agenda.add(node.joins_at, NODE_CHANGES, node)
            if node.leaves_at < inf:
                self._agenda.add(node.leaves_at, NODE_CHANGES, node)
        for control in self.settings.controls:
            self._agenda.add(control.every_seconds, LOOK, control)

    def _happen(self, now: float) -> None:
        """All that happens at this moment."""
        agenda, supply = self._agenda, self._supply
        while True:
            next_rows = supply.next_at
            time, priority = agenda.next_order
            if time > now and next_rows > now:
                return
            if next_rows <= now and (time > now or priority > ROWS_COME):
                supply.come(now)
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

    def _turn_ends(self, turn: Turn, now: float) -> None:
        if turn.broken:
            return
        station = turn.station
        self.scheduler.finished(turn.grant.stage, now)
        self._slot_map.release(turn.places)
        station.end(turn, self._measured_from)
        self._supply.catch_up(station, now)
        self.turns += 1
        self.events += 1
        if turn.result is not None:
            self._deliver(station.setup, turn.result, now)
        self._touched[station] = None
        if self.settings.on_turn is not None:
            self.settings.on_turn(turn)
        for control in self.settings.controls:
            control.turn_ended(self, turn, now)

    def _touch(self, station: Station) -> None:
        self._touched[station] = None

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
        self._slot_map.count(now)
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
                    self._supply.catch_up(station, now)
                    self._slot_map.release(turn.places)
                    self._touched[station] = None

    def _controlled(self, control: Control, now: float) -> None:
        for station in self.stations.values():
            self._supply.catch_up(station, now)
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
            redraw(scheduler)
            if self._lazy:
                self._supply.catch_up(self._by_lane[scheduler.upcoming], now)
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
            steepness = self.plant.steepness[station.name] if self._steep else None
            costs = station.costs(self.settings.grain_seconds) if self._contexts else None
            view = station.view(now, costs, steepness)
            station.waits_as = lane
            if not self._lazy:
                self._supply.watch(station)
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
            self._supply.watch(station)
            if self._contexts and station.setup.window is not None:
                self.scheduler.expect(station.name, station.expected_start(now))

    def _begin(self, grant: Grant) -> None:
        station = self._by_lane[grant.stage]
        turn = station.begin(grant, self._slot_map.place(grant.slots))
        self.scheduler.took(grant.stage, turn.taken.rows.count)
        if self._contexts and station.setup.window is not None:
            self.scheduler.expect(station.name, station.expected_start(grant.at))
        self.events += 1
        self._agenda.add(turn.ends_at, TURN_ENDS, turn)
        if station.may_wait:
            self._touched[station] = None

    def _outcome(self, end: float, warmup_seconds: float) -> Outcome:
        for station in self.stations.values():
            for turn in station.running.values():
                station.count_slots(turn.grant, end, self._measured_from)
        occupied = sum(station.slot_seconds for station in self.stations.values())
        return Outcome(
            seconds=end - warmup_seconds,
            sinks=sink_outcomes(self.plant, self.latencies),
            stages={name: stage_outcome(station) for name, station in self.stations.items()},
            slots_busy=self._slot_map.busy_share(occupied, end),
            events=self.events + self._supply.segments,
            segments=self._supply.segments,
            turns=self.turns,
            backlog_seconds=backlog_seconds(self.plant, self.stations.values()),
        )
