"""A session that Penstock has not built, in a process of its own: all tests beside share one that it has."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, time
from pyspark.sql import SparkSession
from penstock import Engine
from penstock.errors import PenstockError
from penstock.spark.jar import penstock_jar

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
if sys.argv[2] == "with":
    builder = builder.config("spark.jars", str(penstock_jar()))
spark, came = builder.getOrCreate(), []
try:
    engine = Engine(spark, state=sys.argv[1])
except PenstockError as refused:
    print("refused", refused)
    sys.exit()
with engine:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    engine.start(rows, lambda batch, number: came.append(batch.count()), latency="2s", name="rows")
    limit = time.monotonic() + 60
    while sum(came) < 20 and time.monotonic() < limit:
        time.sleep(0.1)
    print("came", sum(came) >= 20, engine.pipelines)
"""


def told(tmp_path: Path, jar: str) -> str:
    run = [sys.executable, "-c", PROGRAM, str(tmp_path / "state"), jar]
    return subprocess.run(run, capture_output=True, text=True, timeout=180, check=True).stdout.strip()


@pytest.mark.spark
def test_a_session_of_the_users_own_runs_a_query_if_it_has_the_classes(tmp_path: Path) -> None:
    assert told(tmp_path, "with") == "came True {'rows': 'running'}"


@pytest.mark.spark
def test_a_session_without_the_classes_is_refused_with_what_to_do(tmp_path: Path) -> None:
    assert told(tmp_path, "without") == (
        "refused a session of your own must have Penstock's classes from its start, got one without: "
        'build it with .config("spark.jars", str(penstock_jar())), from penstock.spark.jar import '
        "penstock_jar, in a process that has no session yet; or let Engine() start one"
    )
