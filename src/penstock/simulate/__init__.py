"""The same policies, plans and controllers on simulated slots, nodes and arrivals. Imports no Spark."""

from penstock.simulate.arrivals import Arrivals, Bursts, Renewal, Steps, Ticks, Trace
from penstock.simulate.costs import TurnCost, fitted
from penstock.simulate.errors import SimulationError
from penstock.simulate.nodes import Node, pool_of
from penstock.simulate.outcome import Outcome, SinkOutcome, StageOutcome
from penstock.simulate.plant import Inflow, Plant, StageSetup, WindowSetup
from penstock.simulate.settings import Control, SimulationSettings
from penstock.simulate.simulation import Simulation

__all__ = [
    "Arrivals",
    "Bursts",
    "Control",
    "Inflow",
    "Node",
    "Outcome",
    "Plant",
    "Renewal",
    "Simulation",
    "SimulationError",
    "SimulationSettings",
    "SinkOutcome",
    "StageOutcome",
    "StageSetup",
    "Steps",
    "Ticks",
    "Trace",
    "TurnCost",
    "WindowSetup",
    "fitted",
    "pool_of",
]
