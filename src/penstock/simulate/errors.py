"""What can be wrong with a simulation that was asked for."""

from penstock.errors import PenstockError


class SimulationError(PenstockError):
    """A simulation of something that cannot be."""
