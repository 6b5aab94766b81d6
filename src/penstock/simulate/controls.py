"""The planner of batches and the controller of slots, looking at a simulation as they do at an engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from penstock.measure.rates import RateMeter
from penstock.model import BulkService, GIGk, Network, NetworkStage, StageModel
from penstock.plan.changes import PlanChange
from penstock.plan.controller import SlotController
from penstock.plan.controller_state import Hold, Rescale, SlotObservation, SlotState
from penstock.plan.planner import BatchPlanner, Offered, PlanLook
from penstock.plan.triggers import Conditional, EveryProduct, Trigger
from penstock.plan.workflow import RESERVE
from penstock.simulate.errors import SimulationError
from penstock.simulate.simulation import Simulation
from penstock.simulate.station import Station, Turn

PLAN_SECONDS = 1.0
"""Between two looks of the planner, as in an engine."""


class BatchPlanning:
    """Plans batch sizes by the rates and costs of the simulation. Of use for one run."""

    every_seconds = PLAN_SECONDS

    def __init__(self, trigger: Trigger | None = None, reserve: float = RESERVE):
        self._planner = BatchPlanner(trigger or Conditional(), reserve)

    @property
    def changes(self) -> deque[PlanChange]:
        """The plans that were put in force."""
        return self._planner.changes

    def look(self, simulation: Simulation, now: float) -> None:
        if not simulation.plant.graphs:
            raise SimulationError(
                "batches must be planned for pipelines, got stages without any: make the plant from pipelines"
            )
        stations = simulation.stations
        offered = {name: Offered(each.inbox.rows_offered, 0.0) for name, each in stations.items()}
        seen = PlanLook(
            now,
            simulation.plant.graphs,
            lambda name: stations[name].learned,
            offered,
            simulation.scheduler.slots,
        )
        change = self._planner.look(seen)
        if change is not None:
            for name, station in stations.items():
                station.planned_rows = change.rows.get(name)
            simulation.look_at(tuple(stations.values()))

    def turn_ended(self, simulation: Simulation, turn: Turn, now: float) -> None:
        if turn.result is None or turn.station.setup.sink is None:
            return
        self._planner.product_made()
        if isinstance(self._planner.trigger, EveryProduct):
            self.look(simulation, now)


class SlotControl:
    """Gives stages slots as the controller decides. Of use for one run.

    A stage that serves rows singly is taken for GI/G/k, one with turns for bulk service with slots of
    its own; an input passes each stage as often as rows come to it for one from outside, a turn once.
    """

    def __init__(self, controller: SlotController, every_seconds: float = 60.0):
        self.every_seconds = every_seconds
        self.decisions: list[tuple[float, Hold | Rescale]] = []
        self._controller = controller
        self._state: SlotState | None = None
        self._meters: dict[str, RateMeter] = {}
        self._seen = (0.0, 0.0)

    def look(self, simulation: Simulation, now: float) -> None:
        stations = simulation.stations
        slots = {name: _slots(station) for name, station in stations.items()}
        network = self._network(simulation, now)
        rows, seconds = self._done(simulation)
        if self._state is None:
            self._state = SlotState(slots, 0.0)
        mean = seconds / rows if rows else 0.0
        step = self._controller.step(self._state, SlotObservation(now, network, slots, mean, int(rows)))
        self._state = step.state
        self.decisions.append((now, step.decision))
        if isinstance(step.decision, Rescale):
            self._act(simulation, step.decision.plan.slots)

    def turn_ended(self, simulation: Simulation, turn: Turn, now: float) -> None:
        """Nothing: it looks now and then."""

    @staticmethod
    def _act(simulation: Simulation, slots: Mapping[str, int]) -> None:
        for name, count in slots.items():
            simulation.stations[name].set_slots(count)
        simulation.look_at(tuple(simulation.stations.values()))

    def _done(self, simulation: Simulation) -> tuple[float, float]:
        """Rows that came to sinks since the last look, and the sum of their latencies."""
        totals = [each.totals for each in simulation.latencies.values()]
        now = (sum(rows for rows, _ in totals), sum(seconds for _, seconds in totals))
        before, self._seen = self._seen, now
        return now[0] - before[0], now[1] - before[1]

    def _network(self, simulation: Simulation, now: float) -> Network:
        rates = {
            name: self._meters.setdefault(name, RateMeter(0.0, 0.0))
            .look(station.inbox.rows_offered, now)
            .steady
            for name, station in simulation.stations.items()
        }
        flows = simulation.plant.inflows
        first = {each.name for flow in flows for each in simulation.plant.readers[flow.queue]}
        outside = max(sum(rates[name] for name in first), 1e-9)
        return Network(
            tuple(
                NetworkStage(
                    name,
                    _model(station, rates[name]),
                    rates[name] / outside if station.setup.lanes else 1.0,
                )
                for name, station in simulation.stations.items()
            )
        )


def _slots(station: Station) -> int:
    return station.lanes if station.setup.lanes else station.slots


def _model(station: Station, rows_per_second: float) -> StageModel:
    cost = station.setup.cost
    if station.setup.lanes:
        return GIGk(rows_per_second, 1.0 / cost.mean_seconds(1, 1), service_scv=cost.scv)
    return BulkService(rows_per_second, cost.fixed_seconds, cost.row_seconds)
