from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING

import pytest

from penstock.bench.batching.key_leaks import holds_key, key_leaks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_key_is_found_in_every_spelling() -> None:
    key = secrets.token_bytes(32)
    for text in (key, base64.b64encode(key), base64.urlsafe_b64encode(key), key.hex().encode()):
        assert holds_key(b"before " + text + b" after", key)
    assert not holds_key(secrets.token_bytes(1000), key)


@pytest.mark.spark
def test_a_pipeline_leaves_no_key_behind(spark: SparkSession) -> None:
    assert key_leaks(spark) == 0
