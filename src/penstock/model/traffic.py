"""How fast rows come to each stage, through splits, joins and loops."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.stage_model import ModelError

TOO_CLOSE = 1e-12


class EndlessLoopError(ModelError):
    """Rows go round a loop without becoming fewer."""


def rates_through(
    outside: Mapping[str, float], shares: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """lambda_i = outside_i + sum over j of s_ji lambda_j, solved by elimination.

    `outside` has all stages, best each after those it reads: without loops that takes one step for each edge.
    `shares[j][i]` rows come to i for a row taken at j.

    >>> rates_through({"read": 10.0, "step": 0.0}, {"read": {"step": 1.0}, "step": {"step": 0.5}})
    {'read': 10.0, 'step': 20.0}
    """
    names = list(outside)
    rates = [outside[name] for name in names]
    system = _System(names, shares)
    for place in range(len(names)):
        system.eliminate(place, rates)
    for place in range(len(names) - 1, -1, -1):
        later = ((above, share) for above, share in system.into[place].items() if above > place)
        rates[place] += sum(share * rates[above] for above, share in later)
    return dict(zip(names, rates, strict=True))


class _System:
    """The equations, by place: what comes into a stage from others, and where it goes."""

    def __init__(self, names: list[str], shares: Mapping[str, Mapping[str, float]]):
        self.names = names
        self.into: list[dict[int, float]] = [{} for _ in names]
        self.out: list[set[int]] = [set() for _ in names]
        places = {name: place for place, name in enumerate(names)}
        for above, edges in shares.items():
            for below, share in edges.items():
                if above not in places or below not in places:
                    raise ModelError(
                        f"an edge must join two stages that have a rate, got {above!r} to {below!r}: "
                        "rows would come from nowhere"
                    )
                self._add(places[above], places[below], share)

    def _add(self, above: int, below: int, share: float) -> None:
        if share:
            self.into[below][above] = self.into[below].get(above, 0.0) + share
            self.out[above].add(below)

    def eliminate(self, place: int, rates: list[float]) -> None:
        """Puts what is known of one stage into the equations of all later ones."""
        into = self.into[place]
        # What still comes back to the stage itself, also by way of the stages before it.
        left = 1.0 - into.pop(place, 0.0)
        if left <= TOO_CLOSE:
            raise EndlessLoopError(
                f"rows that go round a loop must become fewer, got as many or more at each round through "
                f"{self.names[place]!r}: no rate could be told"
            )
        rates[place] /= left
        for above in into:
            into[above] /= left
        later = [(above, share) for above, share in into.items() if above > place]
        for below in [each for each in self.out[place] if each > place]:
            share = self.into[below].pop(place)
            rates[below] += share * rates[place]
            for above, more in later:
                self._add(above, below, share * more)
