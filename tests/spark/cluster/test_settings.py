from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.spark.cluster.settings import cluster_preset, is_on_this_machine, master_kind
from penstock.spark.cluster.standalone import WorkerSize


@pytest.mark.parametrize(
    ("master", "kind"),
    [
        ("local", "local"),
        ("local[4]", "local"),
        ("spark://127.0.0.1:7077", "standalone"),
        ("local-cluster[2,1,1024]", "standalone"),
        ("yarn", "yarn"),
        ("k8s://https://cluster:6443", "kubernetes"),
    ],
)
def test_a_master_says_who_runs_the_executors(master: str, kind: str) -> None:
    assert master_kind(master) == kind


def test_a_master_that_spark_does_not_know_is_refused() -> None:
    with pytest.raises(PenstockError) as refused:
        master_kind("mesos://here")
    assert str(refused.value) == (
        "a master must be local, local[N], spark://HOST:PORT, yarn or k8s://URL, got 'mesos://here': "
        "Spark could not start"
    )


def test_only_the_loopback_address_is_this_machine() -> None:
    assert is_on_this_machine("local[2]")
    assert is_on_this_machine("spark://127.0.0.1:7077")
    assert is_on_this_machine("spark://localhost:7077")
    assert not is_on_this_machine("spark://localhost2:7077")
    assert not is_on_this_machine("spark://cluster:7077")
    assert not is_on_this_machine("yarn")


def test_a_region_is_asked_for_as_a_resource_of_its_workers() -> None:
    asked = cluster_preset("spark://cluster:7077", "eu-west")
    assert asked["spark.executor.resource.region_eu-west.amount"].value == "1"
    assert not any("resource" in key for key in cluster_preset("spark://cluster:7077"))


def test_a_region_of_another_manager_is_refused() -> None:
    with pytest.raises(PenstockError, match="a region must be of a standalone cluster"):
        cluster_preset("yarn", "eu")


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ({"cores": 0}, "a worker must have at least 1 core, got 0: it could run no task"),
        (
            {"memory": "lots"},
            "a worker's memory must be such as 512m or 2g, got 'lots': nothing was started",
        ),
        (
            {"region": "eu.west"},
            "a region must be named by letters, digits, - and _, got 'eu.west': it labels Spark's workers",
        ),
    ],
)
def test_a_worker_that_could_not_be_is_refused(size: dict[str, object], said: str) -> None:
    with pytest.raises(PenstockError) as refused:
        WorkerSize(**size)  # type: ignore[arg-type]
    assert str(refused.value) == said
