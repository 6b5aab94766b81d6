"""The numbers that are known of one pass over the real trace."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.operators.riot import reference
from tests.operators.riot.inputs import assert_close, chosen, line_table, rows_of

from penstock.operators import riot
from penstock.workloads.riot.city import City, data_folder, read_city

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def city() -> City:
    folder = data_folder()
    if folder is None:
        pytest.skip("the real trace is not here: set PENSTOCK_DATA to the folder that holds riotbench/")
    return read_city(folder)


def test_the_real_trace_has_the_nulls_annotations_and_rows_that_are_known(
    spark: SparkSession, city: City
) -> None:
    source = spark.createDataFrame(line_table(city.lines))
    valid = riot.range_filter()(riot.senml_parse()(source).drop("dead_letter", "raw"))
    nulls = valid.filter("value is null and name != 'source'").collect()
    assert Counter(row["name"] for row in nulls) == {
        "temperature": 73,
        "humidity": 158,
        "light": 8,
        "dust": 99,
        "airquality_raw": 83,
    }
    assert len({row["msgid"] for row in nulls}) == 361
    gathered = riot.join_by_message()(riot.interpolate()(riot.bloom_filter(city.metadata)(valid)))
    annotated = riot.annotate(city.metadata)(gathered)
    assert annotated.filter("dead_letter is null and location is not null").count() == 1000
    columns = ("msgid", "time", "longitude", "latitude", "source", *reference.QUANTITIES, "location", "type")
    expected = chosen(reference.cleaned(city.lines, city.metadata), *columns)
    assert_close(rows_of(annotated, *columns), expected)


def test_the_real_trace_has_the_classes_and_sources_that_are_known(spark: SparkSession, city: City) -> None:
    rows = riot.senml_project()(spark.createDataFrame(line_table(city.lines)))
    classes = Counter(row["class"] for row in riot.decision_tree()(rows).collect())
    assert classes == {"BAD": 431, "GOOD": 306, "VERYGOOD": 263}
    sources = Counter(row["sensor"] for row in rows.collect())
    assert Counter(sources.values()) == {1: 597, 2: 172, 3: 17, 4: 2}
    assert riot.block_average()(rows).count() == 0
