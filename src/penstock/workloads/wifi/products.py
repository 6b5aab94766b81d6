"""The workflow: one stream of associations, five data products, each with its own rules and latency target.

Unfused, every operator is a stage; fused, a product is one stage, and flow is three, as it has state twice
and then runs jobs of its own at every turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.operators.privacy import (
    Budget,
    Keys,
    PolicyTable,
    access_control,
    encrypt,
    generalise_place,
    generalise_time,
    k_anonymous,
    private_counts,
    pseudonymise,
)
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec, Stream
from penstock.workloads.wifi.associations import CAMPUS
from penstock.workloads.wifi.campus import Campus
from penstock.workloads.wifi.policies import exposed_subjects
from penstock.workloads.wifi.sharing import PRODUCTS
from penstock.workloads.wifi.steps import contacts, moves

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Rules:
    """How much of the truth each product keeps. `exposed` are the subjects that others are warned of."""

    campus: Campus = CAMPUS
    exposed: Collection[str] = field(default_factory=exposed_subjects, repr=False)
    contact: str = "15m"
    flow_window: str = "5s"
    flow_epsilon: float = 0.5
    flow_buildings_each: int = 1
    """Buildings that one subject counts in, in one window."""
    occupancy_window: str = "10s"
    occupancy_k: int = 5
    archive_time: str = "15m"


@dataclass(frozen=True)
class _Sharing:
    """What all products are made with."""

    policies: PolicyTable
    keys: Keys
    budget: Budget
    rules: Rules

    def permitted(self, rows: Stream, product: str) -> Stream:
        """The rows whose subjects allow this product."""
        who = PRODUCTS[product]
        rule = access_control(self.policies, consumer=who.consumer, purpose=who.purpose)
        return rows.operator(f"{product}_access", rule)

    def hidden(self, rows: Stream, product: str) -> Stream:
        """The rows under pseudonyms of this product alone: no two products can be joined by them."""
        return rows.operator(f"{product}_pseudonym", pseudonymise("subject", self.keys, purpose=product))

    def located(self, rows: Stream, product: str) -> Stream:
        """The rows with the building of their access point."""
        place = generalise_place("ap", self.rules.campus.places, into="building")
        return rows.operator(f"{product}_place", place)


def wifi(
    source: SourceSpec,
    *,
    policies: PolicyTable,
    keys: Keys,
    budget: Budget,
    sinks: Mapping[str, SinkSpec],
    fused: bool = False,
    rules: Rules | None = None,
) -> Pipeline:
    """The pipeline; `source` gives associations (SCHEMA), in the order of their time `at`.

    `sinks` has a sink for each product that is wanted: of the others nothing is computed.
    """
    if unknown := [name for name in sinks if name not in PRODUCTS]:
        raise PenstockError(
            f"sinks must be for the products {', '.join(PRODUCTS)}, got one for {', '.join(unknown)}: "
            "nothing would come to it"
        )
    pipeline = Pipeline("wifi", fuse=fused)
    rows = pipeline.source("associations", source)
    sharing = _Sharing(policies, keys, budget, rules or Rules())
    for name, sink in sinks.items():
        _MADE[name](rows, sharing).sink(name, sink, latency=PRODUCTS[name].latency_seconds)
    return pipeline


def _exposure(rows: Stream, sharing: _Sharing) -> Stream:
    """Who came to an access point where somebody exposed had been: subject, ap, at, exposed_at."""
    allowed = sharing.permitted(rows, "exposure")
    meet = contacts(sharing.rules.exposed, within=sharing.rules.contact)
    met = allowed.operator("exposure_contacts", lambda frame: meet(frame).drop("mac"), stateful=True)
    return sharing.hidden(met, "exposure")


def _concierge(rows: Stream, sharing: _Sharing) -> Stream:
    """Where a subject is who wants to be found, for whoever has the key: subject, ap, at."""
    allowed = sharing.permitted(rows, "concierge")
    sealed = allowed.operator("concierge_encrypt", _sealed_place(sharing.keys))
    return sharing.hidden(sealed, "concierge")


def _flow(rows: Stream, sharing: _Sharing) -> Stream:
    """How many subjects came into each building from another, with noise: window, building, value, reason."""
    rules = sharing.rules
    located = sharing.located(sharing.permitted(rows, "flow"), "flow")
    # A window is released if any row comes to it: were it movers' rows only, that would tell of a move.
    moved = located.operator("flow_moves", moves("building", keep_others=True), stateful=True)
    counts = private_counts(
        sharing.budget,
        product="flow",
        epsilon=rules.flow_epsilon,
        on="at",
        size=rules.flow_window,
        by="building",
        groups=rules.campus.building_names,
        groups_each=rules.flow_buildings_each,
    )
    return counts.add_to(moved, "flow_noise")


def _occupancy(rows: Stream, sharing: _Sharing) -> Stream:
    """Subjects in each building with enough of them: window, building, subjects, suppressed."""
    rules = sharing.rules
    located = sharing.located(sharing.permitted(rows, "occupancy"), "occupancy")
    count = k_anonymous(rules.occupancy_k, on="at", size=rules.occupancy_window, by="building")
    return located.operator("occupancy_groups", count, stateful=True, watermark="at")


def _archive(rows: Stream, sharing: _Sharing) -> Stream:
    """All fields for later, made coarse: subject, mac (encrypted), ap, at."""
    hidden = sharing.hidden(sharing.permitted(rows, "archive"), "archive")
    sealed = hidden.operator("archive_encrypt", encrypt("mac", sharing.keys))
    return sealed.operator("archive_time", generalise_time("at", sharing.rules.archive_time))


def _sealed_place(keys: Keys) -> Callable[[DataFrame], DataFrame]:
    seal = encrypt("ap", keys)
    return lambda rows: seal(rows.drop("mac"))


_MADE: Mapping[str, Callable[[Stream, _Sharing], Stream]] = {
    "exposure": _exposure,
    "concierge": _concierge,
    "flow": _flow,
    "occupancy": _occupancy,
    "archive": _archive,
}
