"""What is measured for which options."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from penstock.bench.result import BenchSettings
from penstock.bench.riot.bench import add_arguments, described, jobs, parts


def settings(*words: str, quick: bool = False) -> BenchSettings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return BenchSettings(quick, Path("riot.json"), parser.parse_args(words))


def names(*words: str) -> list[str]:
    return [job.topology for job in jobs(settings(*words))]


def test_a_policy_that_is_named_is_measured_whatever_else_is() -> None:
    for asked in (
        settings("--policy", "random", quick=True),
        settings("--policy", "random", "--only", "curves"),
    ):
        assert "policies" in parts(asked)
        assert all(job.policies == ["random"] for job in jobs(asked))


def test_parts_of_one_topology_need_no_other() -> None:
    assert names("--only", "burst") == ["etl"]
    assert names("--only", "consumption", "--only", "balance") == ["pred", "stats"]
    assert names("--only", "burst", "--burst-rate", "900") == []
    assert names("--only", "burst", "--only", "fused") == ["etl", "pred", "stats", "train"]
    assert names("--only", "burst", "--topology", "train") == ["train"]


def test_rates_that_are_named_are_run_in_order_without_a_search() -> None:
    asked = settings("--rates", "400,100", "--topology", "etl")
    assert [job.rates for job in jobs(asked)] == [(100.0, 400.0)]
    assert parts(asked) == parts(settings(quick=True)) == ("curves",)


@pytest.mark.parametrize("text", ["", "many", "100,-1"])
def test_rates_that_are_none_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings("--rates", text)
    said = capsys.readouterr().err
    assert (
        f"rates must be positive numbers with commas between them, got {text!r}: nothing could be fed" in said
    )


def test_instances_are_one_or_those_of_the_paper() -> None:
    assert {job.instances for job in jobs(settings())} == {"one"}
    paper = settings("--instances", "paper")
    assert {job.instances for job in jobs(paper)} == {"paper"}
    assert described(paper)["instances"] == "paper"
