"""All five products through the engine, against the plain computation: turns of any size, restarts."""

from __future__ import annotations

import base64
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.errors import PenstockError
from penstock.operators.privacy import Budget, Keys, Policy, PolicyTable, decrypt
from penstock.stages import cut
from penstock.workloads.wifi import (
    PRODUCTS,
    SCHEMA,
    Campus,
    Checked,
    Rules,
    exposed_subjects,
    generate,
    policies_of,
    wifi,
)
from penstock.workloads.wifi.associations import ARROW
from penstock.workloads.wifi.check import noise_bound, pseudonym

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
CAMPUS = Campus(subjects=40, buildings=4, access_points=8)
KEY = bytes(range(32))
# Policies until 09:30 end in the middle.
BEGIN = datetime(2020, 1, 6, 9, 29, 48, tzinfo=UTC)
SECONDS, RATE = 24.0, 30.0
POLICIES = policies_of(CAMPUS, seed=5)
EXPOSED = exposed_subjects(CAMPUS, share=0.1)
ARRIVALS = generate(RATE, SECONDS, campus=CAMPUS, begin=BEGIN)
ROWS: list[Row] = [row for _, table in ARRIVALS for row in table.to_pylist()]
CHECKED = Checked(ROWS, POLICIES, CAMPUS.places, EXPOSED)
# Noise of this epsilon is 0 but once in 10^10 draws.
WITHOUT_NOISE = 50.0
SENTINEL = "last"


def rules(epsilon: float = WITHOUT_NOISE) -> Rules:
    return Rules(
        campus=CAMPUS,
        exposed=EXPOSED,
        contact="4s",
        flow_epsilon=epsilon,
        flow_buildings_each=2,
        occupancy_k=4,
        archive_time="7s",
    )


@dataclass
class Site:
    """A place where the workflow runs, again and again: its keys, policies, budget, input and results."""

    folder: Path
    source: Spool

    def pipeline(self, *, fused: bool, rules: Rules, products: Iterable[str] = PRODUCTS) -> Pipeline:
        return wifi(
            sources.FromSpool(self.source, SCHEMA),
            policies=PolicyTable(self.folder / "policies.jsonl"),
            keys=self.keys,
            budget=Budget(self.folder / "budget.db", 10_000.0),
            sinks={name: sinks.Parquet(self.folder / name) for name in products},
            fused=fused,
            rules=rules,
        )

    @property
    def keys(self) -> Keys:
        return Keys.from_file(self.folder / "key")

    def rows(self, product: str) -> list[Row]:
        return _rows(self.folder / product)

    def windows(self, product: str) -> list[Row]:
        """The windows of the rows under test: what the last rows make is left out."""
        found = sorted(_rows(self.folder / product), key=str)
        return [row for row in found if row["window"]["start"] < BEGIN + timedelta(seconds=SECONDS)]


def _rows(folder: Path) -> list[Row]:
    files = sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


@pytest.fixture
def site(tmp_path: Path, spool: SpoolFactory) -> Site:
    key = tmp_path / "key"
    key.write_text(base64.b64encode(KEY).decode())
    key.chmod(0o600)
    always = [Policy(SENTINEL, each.consumer, [each.purpose]) for each in PRODUCTS.values()]
    PolicyTable(tmp_path / "policies.jsonl").write([*POLICIES, *always])
    return Site(tmp_path, spool())


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ARROW)


def cuts(rows: Sequence[Row], most: int, seed: int) -> list[pa.Table]:
    chance, place, found = random.Random(seed), 0, []
    while place < len(rows):
        size = chance.randint(1, most)
        found.append(table(rows[place : place + size]))
        place += size
    return found


def close_windows(site: Site, runs: Engine) -> None:
    """Somebody who moves much later: all windows before are complete."""
    for later in (60, 120):
        moments = [BEGIN + timedelta(seconds=SECONDS + later + step) for step in range(2)]
        places = ("b000-ap00", "b001-ap00")
        rows = [
            {"subject": SENTINEL, "mac": "", "ap": ap, "at": at}
            for ap, at in zip(places, moments, strict=True)
        ]
        site.source.append(table(rows))
        runs.drain(120)


def hidden(rows: Iterable[Mapping[str, Any]], product: str) -> list[Row]:
    """Expected rows under their pseudonyms, in the order of the sink's."""
    found = [{**row, "subject": pseudonym(KEY, product, row["subject"])} for row in rows]
    return sorted(found, key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    return row["at"], row["subject"], row["ap"]


def opened(spark: SparkSession, site: Site, product: str, column: str) -> list[Row]:
    """The sink's rows with a column decrypted, without those of the last rows."""
    frame = spark.createDataFrame(pa.Table.from_pylist(site.rows(product)))
    rows = decrypt(column, site.keys, unreadable="null")(frame).toArrow().to_pylist()
    return sorted(of_the_test(rows, product), key=_order)


def of_the_test(rows: Iterable[Row], product: str) -> list[Row]:
    last = pseudonym(KEY, product, SENTINEL)
    return [row for row in rows if row["subject"] != last]


def check_rows(spark: SparkSession, site: Site) -> None:
    """Exposure, concierge and archive, row by row."""
    warned = hidden(CHECKED.exposure(timedelta(seconds=4)), "exposure")
    assert sorted(of_the_test(site.rows("exposure"), "exposure"), key=_order) == warned
    assert 0 < len(warned) < len(ROWS) / 2
    found = opened(spark, site, "concierge", "ap")
    assert found == hidden(CHECKED.concierge(), "concierge")
    archive = hidden(CHECKED.archive(timedelta(seconds=7)), "archive")
    stored = opened(spark, site, "archive", "mac")
    assert sorted(stored, key=str) == sorted(archive, key=str)
    assert 0 < len(found) < len(ROWS)
    assert 0 < len(archive) < len(ROWS)


def check_occupancy(site: Site, k: int = 4) -> None:
    found: dict[datetime, dict[str, int]] = defaultdict(dict)
    suppressed: Counter[datetime] = Counter()
    for row in site.windows("occupancy"):
        start = row["window"]["start"]
        if row["suppressed"] is None:
            found[start][row["building"]] = row["subjects"]
        else:
            assert (row["building"], row["subjects"]) == (None, None)
            suppressed[start] += row["suppressed"]
    expected = CHECKED.occupancy(timedelta(seconds=10))
    assert found == {start: {b: n for b, n in each.items() if n >= k} for start, each in expected.items()}
    assert suppressed == Counter(
        {start: sum(n < k for n in each.values()) for start, each in expected.items()}
    )
    assert suppressed.total() > 0


def flow_errors(site: Site) -> list[int]:
    """What each released count is off by; every building is released in every window with a row."""
    expected = CHECKED.flow(timedelta(seconds=5), 2)
    rows = site.windows("flow")
    assert all(row["reason"] is None for row in rows)
    assert Counter(row["window"]["start"] for row in rows) == dict.fromkeys(expected, CAMPUS.buildings)
    return [row["value"] - expected[row["window"]["start"]].get(row["building"], 0) for row in rows]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "fused", "most", "drain_every"), [("longest-queue", False, 200, 2), ("batchit", True, 120, 4)]
)
def test_every_product_is_that_of_the_plain_computation(
    spark: SparkSession,
    engine: EngineFactory,
    site: Site,
    policy: str,
    fused: bool,
    most: int,
    drain_every: int,
) -> None:
    runs = engine(policy=policy)
    runs.submit(site.pipeline(fused=fused, rules=rules()))
    for number, rows in enumerate(cuts(ROWS, most, seed=most)):
        site.source.append(rows)
        if number % drain_every == drain_every - 1:
            runs.drain(120)
    runs.drain(120)
    close_windows(site, runs)
    if policy == "batchit":
        # It looks once a second, and turns may have been quicker than that.
        eventually(lambda: runs.planner is not None and runs.planner.made > 0)
    else:
        assert runs.planner is None
    assert sum(report.late_rows for report in runs.stages()) == 0
    runs.stop()
    check_rows(spark, site)
    check_occupancy(site)
    assert set(flow_errors(site)) == {0}


@pytest.mark.spark
@pytest.mark.slow
def test_a_restart_in_the_middle_changes_no_product(
    spark: SparkSession, engine: EngineFactory, site: Site
) -> None:
    first, pieces = engine(policy="longest-queue"), cuts(ROWS, 160, seed=3)
    first.submit(site.pipeline(fused=True, rules=rules(epsilon=1.0)))
    half = len(pieces) // 2
    for rows in pieces[:half]:
        site.source.append(rows)
        first.drain(120)
    for rows in pieces[half:]:
        site.source.append(rows)
    first.stop()
    again = engine(policy="fifo")
    again.submit(site.pipeline(fused=True, rules=rules(epsilon=1.0)))
    again.drain(120)
    close_windows(site, again)
    again.stop()
    check_rows(spark, site)
    check_occupancy(site)
    errors = flow_errors(site)
    assert max(map(abs, errors)) <= noise_bound(2 / 1.0, len(errors))
    assert len(set(errors)) > 1, "there is no noise"


def test_unfused_every_operator_is_a_stage_and_fused_a_product_is(site: Site) -> None:
    apart, together = (cut(site.pipeline(fused=fused, rules=rules())) for fused in (False, True))
    assert len(apart.stages) == 18
    assert all(len(stage.operators) == 1 for stage in apart.stages)
    assert len(together.stages) == 7
    for graph in (apart, together):
        targets = {s.sink.name: s.sink.latency_seconds for s in graph.stages if s.sink is not None}
        assert targets == {"exposure": 0.5, "concierge": 1.0, "flow": 5.0, "occupancy": 10.0, "archive": 30.0}


def test_only_the_products_with_a_sink_are_made(site: Site) -> None:
    graph = cut(site.pipeline(fused=False, rules=rules(), products=["archive"]))
    assert [stage.operators[0].name for stage in graph.stages] == [
        "archive_access",
        "archive_pseudonym",
        "archive_encrypt",
        "archive_time",
    ]
    with pytest.raises(PenstockError) as error:
        site.pipeline(fused=True, rules=rules(), products=["archive", "advertising"])
    assert str(error.value) == (
        "sinks must be for the products exposure, concierge, flow, occupancy, archive, got one for "
        "advertising: nothing would come to it"
    )
