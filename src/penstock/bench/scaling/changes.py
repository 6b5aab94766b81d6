"""Twenty changes of slots under load: what is lost, doubled, and held up."""

from __future__ import annotations

from penstock.bench.result import BenchResult, Table, at_most
from penstock.bench.scaling.stand import Stand
from penstock.bench.stats import Summary, single

CHANGES = 20
RATE = 20.0
BETWEEN_SECONDS = 2.0


def changes(stand: Stand, result: BenchResult, count: int = CHANGES) -> None:
    """Half of them of a stage without state, half of one with."""
    told = stand.ask(do="changes", rate=RATE, seconds=count * 15.0, changes=count, between=BETWEEN_SECONDS)
    for kind, mark in (("stateless", 100), ("stateful", 5000)):
        pauses = [1000 * each for each in told["pauses"][kind]]
        result.put(f"pause_ms_{kind}", _longest(pauses), at_most(mark))
    result.put("lost", single(told["lost"] + told["keys_miscounted"]), at_most(0))
    result.put("doubled", single(told["doubled"]), at_most(0))
    rows = [
        [str(place + 1), *(f"{1000 * told['pauses'][kind][place]:.0f}" for kind in ("stateless", "stateful"))]
        for place in range(min(map(len, told["pauses"].values())))
    ]
    result.tables.append(
        Table("ms without a turn, at each change", ["change", "stateless", "stateful"], rows)
    )
    result.setup["changes"] = {"changes": told["changes"], "rows_per_second": RATE}


def _longest(pauses: list[float]) -> Summary:
    return Summary(max(pauses), min(pauses), max(pauses), len(pauses)) if pauses else single(float("nan"))
