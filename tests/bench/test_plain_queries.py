"""The rival has the tasks that are declared, where it is asked to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from penstock import Pipeline, sinks, sources
from penstock.bench.plain_queries import PlainQueries
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
