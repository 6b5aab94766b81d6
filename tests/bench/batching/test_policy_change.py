from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.bench.batching.policy_change import policy_change_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_a_change_holds_about_when_it_is_promised_to(spark: SparkSession) -> None:
    seconds = policy_change_seconds(spark, trials=3, refresh=0.2)
    # The refresh, and the turn that was under way, on however slow a machine.
    assert len(seconds) == 3
    assert 0.0 <= min(seconds) <= max(seconds) < 0.2 + 3.0
