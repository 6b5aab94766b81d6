"""Rates and squared coefficients of variation of one stage: lambda, mu, a and s, for queueing models.

Two levels keep it cheap (DRS, section IV-A): all rows are counted, but times are sampled once in every N_m;
and every T_m seconds what was sampled becomes one measurement, which is smoothed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.errors import PenstockError
from penstock.measure.smoothing import Smoothing, WindowSmoothing

FIGURES = ("rate", "service", "arrival_scv", "service_scv")


@dataclass(slots=True)
class Spread:
    """Count, mean and sum of squared deviations of a sample, by Welford's recurrence; stable and O(1)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Takes in a value, `times` times over."""
        self.merge(Spread(times, value))

    def merge(self, other: Spread) -> None:
        """Takes in another sample, such as that of another instance of the stage."""
        if not other.count:
            return
        count, apart = self.count + other.count, other.mean - self.mean
        self.squares += other.squares + apart**2 * self.count * other.count / count
        self.mean += apart * other.count / count
        self.count = count

    @property
    def scv(self) -> float:
        """Variance over squared mean; 0 where nothing varies."""
        return self.squares / self.count / self.mean**2 if self.count and self.mean > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class StageMoments:
    """Smoothed figures of one stage. Before anything is known, rates are 0 and a and s 1, as if Poisson."""

    rows_per_second: float = 0.0
    """lambda."""
    slot_rows_per_second: float = 0.0
    """mu, of one slot."""
    arrival_scv: float = 1.0
    """a."""
    service_scv: float = 1.0
    """s."""
    intervals: int = 0
    """Of T_m that were measured."""
    samples: int = 0
    """Of service times, in all."""

    @property
    def known(self) -> bool:
        """Whether there is enough for a model: a rate, and what a row takes."""
        return self.intervals > 0 and self.slot_rows_per_second > 0.0


@dataclass
class MomentMeter:
    """Follows one stage by its events, in order of time. Not safe for threads: the caller locks.

    >>> meter = MomentMeter(0.0, interval_seconds=10.0)
    >>> for second in range(10):
    ...     meter.arrived(second + 1.0)
    ...     meter.served(slot_seconds=0.25)
    >>> figures = meter.look(10.0)
    >>> figures.rows_per_second, figures.slot_rows_per_second, figures.arrival_scv
    (1.0, 4.0, 0.0)
    """

    started_at: float
    every_rows: int = 1
    """N_m."""
    interval_seconds: float = 60.0
    """T_m."""
    smoothing: Callable[[], Smoothing] = lambda: WindowSmoothing(3)
    """Makes one for each figure."""
    _figures: StageMoments = field(default_factory=StageMoments, init=False)
    _gaps: Spread = field(default_factory=Spread, init=False)
    _services: Spread = field(default_factory=Spread, init=False)

    def __post_init__(self) -> None:
        if self.every_rows < 1 or not self.interval_seconds > 0.0:
            raise PenstockError(
                "a meter of moments must sample every 1 or more rows and have intervals of some length, "
                f"got {self.every_rows} rows and {self.interval_seconds} s: nothing would be measured"
            )
        self._smooth = {name: self.smoothing() for name in FIGURES}
        self._began = self._last_arrival = self.started_at
        self._rows = 0
        self._until_gap = self._until_service = self.every_rows

    def arrived(self, at: float, rows: int = 1) -> None:
        """So many rows arrived together: one gap before the first, none before the others.

        When N_m rows have passed, the next arrival is sampled, whole: were it the one that holds the N_m-th
        row, large segments would be sampled more often than small ones.
        """
        if rows < 1:
            return
        if self._until_gap <= 1:
            self._gaps.add(max(at - self._last_arrival, 0.0))
            self._gaps.add(0.0, rows - 1)
            self._until_gap = self.every_rows + 1
        self._until_gap -= rows
        self._last_arrival = max(at, self._last_arrival)
        self._rows += rows

    def served(self, slot_seconds: float, rows: int = 1) -> None:
        """So many rows took that time of one slot together; within a turn they are taken to be alike."""
        if rows < 1:
            return
        if self._until_service <= 1:
            self._services.add(slot_seconds / rows, rows)
            self._until_service = self.every_rows + 1
        self._until_service -= rows

    def look(self, now: float) -> StageMoments:
        """The figures as of the last interval that has ended; call it at least every T_m seconds."""
        seconds = now - self._began
        if seconds >= self.interval_seconds - 1e-9:
            self._figures = self._measured(seconds)
            self._began, self._rows = now, 0
            self._gaps, self._services = Spread(), Spread()
        return self._figures

    def _measured(self, seconds: float) -> StageMoments:
        """What the interval tells; where it tells nothing of a figure, that figure stays as it was."""
        last, gaps, services = self._figures, self._gaps, self._services
        service_seconds = 1.0 / last.slot_rows_per_second if last.slot_rows_per_second > 0.0 else 0.0
        if services.mean > 0.0:
            service_seconds = self._smooth["service"].smooth(services.mean)
        return StageMoments(
            rows_per_second=self._smooth["rate"].smooth(self._rows / seconds),
            slot_rows_per_second=1.0 / service_seconds if service_seconds > 0.0 else 0.0,
            arrival_scv=self._scv("arrival_scv", gaps, last.arrival_scv),
            service_scv=self._scv("service_scv", services, last.service_scv),
            intervals=last.intervals + 1,
            samples=last.samples + services.count,
        )

    def _scv(self, name: str, spread: Spread, last: float) -> float:
        """Two values at least make a spread."""
        return self._smooth[name].smooth(spread.scv) if spread.count > 1 and spread.mean > 0.0 else last
