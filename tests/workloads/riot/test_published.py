"""ETL and PRED as they are meant to run: what they publish is read back from a real broker."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.operators.riot.inputs import line, line_table
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept

from penstock import sinks, sources
from penstock.workloads.mosquitto import Mosquitto, Subscriber, is_installed
from penstock.workloads.riot import City, etl, pred, topology

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not is_installed(), reason="mosquitto and mosquitto-clients are not installed"),
]
LINES = [line(f"s{number}", [8.0, 53.7, 0.0, 411.02, 20.0], time=number) for number in range(300)]
CITY = City(tuple(LINES), {f"s{number}": "hall,solar" for number in range(300)}, "made for the test")


@pytest.mark.parametrize("fused", [False, True], ids=["unfused", "fused"])
def test_every_result_of_etl_and_pred_is_at_the_subscriber_though_the_broker_went_away(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, fused: bool
) -> None:
    source, stored, runs = spool(), Kept(), engine()
    lines = sources.FromSpool(source, topology("etl").schema)
    with Mosquitto() as broker:

        def topic(name: str) -> sinks.Mqtt:
            return sinks.Mqtt(broker.host, broker.port, name)

        with Subscriber(broker, "etl", keep=True) as clean, Subscriber(broker, "pred", keep=True) as said:
            runs.submit(etl(lines, publish=topic("etl"), table=stored.sink, city=CITY, fused=fused))
            runs.submit(pred(lines, publish=topic("pred"), fused=fused))
            source.append(line_table(LINES[:100]))
            eventually(lambda: clean.count >= 100 and said.count >= 200, 120)
            broker.stop()
            source.append(line_table(LINES[100:200], first=100))
            eventually(lambda: len(stored.rows) == 200, 120)
            assert (clean.count, said.count) == (100, 200)
            broker.start()
            source.append(line_table(LINES[200:], first=200))
            runs.drain(120)
            # What was on its way when the broker went may come twice.
            eventually(lambda: {json.loads(text)["bt"] for text in clean.payloads} == set(range(300)))
            eventually(lambda: len(set(said.payloads)) >= 600)
            results = [json.loads(text) for text in said.payloads]
    assert runs.pipelines == {"etl": "running", "pred": "running"}
    classes = Counter(row["sensor"] for row in results if "class" in row)
    errors = Counter(row["sensor"] for row in results if "error" in row)
    assert classes.keys() == errors.keys() == set(CITY.metadata)
