"""The rival has the tasks that are declared, and batches of as many files as it may take."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock import Pipeline, sinks, sources
from penstock.bench.plain_queries import PlainQueries
from penstock.spark.feeders import wait_for
from penstock.spark.jvm import schema_from_ddl
from penstock.stages.fuse import cut

pytestmark = pytest.mark.spark
SCHEMA = "number BIGINT"


@pytest.mark.parametrize("parallel", [False, True])
def test_a_query_has_as_many_tasks_as_its_stage_also_for_one_file_if_it_may(
    spark: SparkSession, tmp_path: Path, parallel: bool
) -> None:
    pipeline = Pipeline("p")
    rows = pipeline.source("numbers", sources.FromSpool(cast(Any, None), SCHEMA))
    rows = rows.operator("next", lambda frame: frame.selectExpr("number + 1 as number"), parallelism=3)
    rows.sink("out", sinks.Callback(lambda table, batch: None))
    graph = cut(pipeline)
    schemas = {name: schema_from_ddl(SCHEMA) for name in graph.queues}
    queries = PlainQueries(spark, graph, schemas, tmp_path, parallel=parallel)
    plan = queries.stages[0]._frame._jdf.queryExecution().analyzed().toString()
    assert f"Repartition 3, {str(parallel).lower()}" in plan, "true: rows are dealt out, false: files are"


def test_batches_take_all_files_until_they_are_limited_and_then_so_many(
    spark: SparkSession, tmp_path: Path
) -> None:
    taken: list[int] = []
    pipeline = Pipeline("p")
    rows = pipeline.source("numbers", sources.FromSpool(cast(Any, None), SCHEMA))
    rows.sink("out", sinks.Callback(lambda table, batch: taken.append(table.num_rows)))
    graph = cut(pipeline)
    queries = PlainQueries(spark, graph, {name: schema_from_ddl(SCHEMA) for name in graph.queues}, tmp_path)
    (folder,) = queries.folders.values()

    def feed(files: int) -> None:
        for _ in range(files):
            folder.put(pa.table({"number": [1]}))

    feed(5)
    queries.start()
    try:
        assert wait_for(lambda: sum(taken) == 5, 60), taken
        assert taken == [5]
        queries.limit(2)
        feed(5)
        assert wait_for(lambda: sum(taken) == 10, 60), taken
        assert max(taken[1:]) <= 2
        queries.limit(None)
        feed(1)
        assert wait_for(lambda: sum(taken) == 11, 60), taken
    finally:
        queries.stop()
