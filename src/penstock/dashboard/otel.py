"""The same metrics for OpenTelemetry: observable instruments, read when the user's exporter asks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.dashboard.metrics import METRICS, Metric
from penstock.dashboard.watch import Watch
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

UNITS = (("_seconds", "s"), ("_bytes", "By"), ("_ratio", "1"))


class NotInstalled(PenstockError):
    """The extra is missing."""

    def __init__(self) -> None:
        super().__init__(
            "OpenTelemetry must be installed to export to it: pip install 'penstock[otel]'; "
            "nothing is exported"
        )


def export(watch: Watch, provider: MeterProvider | None = None) -> int:
    """Registers every metric with a provider, by default the global one; how many there are.

    Names are those of Prometheus with a dot, without `_total`: `penstock.turns`, `penstock.rows_waiting`. The
    parts of a histogram are counters, as nothing else can be read when an exporter asks.
    """
    try:
        from opentelemetry import metrics
    except ImportError:
        raise NotInstalled from None
    meter = (provider or metrics.get_meter_provider()).get_meter("penstock")
    for metric in METRICS:
        counts = metric.kind != "gauge"
        make = meter.create_observable_counter if counts else meter.create_observable_gauge
        observe = partial(_observed, watch, metric, metrics.Observation)
        make(name_of(metric), callbacks=[observe], unit=unit_of(metric), description=metric.help)
    return len(METRICS)


def _observed(watch: Watch, metric: Metric, observation: Any, options: object) -> Iterable[Any]:
    # All of them are asked one after the other: one look serves them.
    with watch.counted():
        return [observation(value, dict(labels)) for labels, value in metric.read(watch.fresh())]


def name_of(metric: Metric) -> str:
    """As OpenTelemetry names things.

    >>> [name_of(each) for each in METRICS if each.name in ("penstock_turns_total", "penstock_rows_waiting")]
    ['penstock.turns', 'penstock.rows_waiting']
    """
    return metric.name.removesuffix("_total").replace("penstock_", "penstock.", 1)


def unit_of(metric: Metric) -> str:
    """The unit of its name, as UCUM writes it."""
    if metric.part in ("bucket", "count"):
        return "1"
    name = metric.name.removesuffix("_total").removesuffix("_sum")
    return next((unit for ending, unit in UNITS if name.endswith(ending)), "1")
