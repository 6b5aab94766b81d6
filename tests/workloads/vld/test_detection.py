"""Logos are found: precision and recall, alone and on Spark, however turns and parts are cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import Kept

from penstock import sources
from penstock.operators.vision import LogoIndex
from penstock.operators.vision.aggregate import SHARE
from penstock.operators.vision.match import DISTANCE
from penstock.operators.vision.opencv import sift_descriptors
from penstock.stages import cut
from penstock.workloads.vld import SCHEMA, STAGES, Score, Shot, Video, draw_logos, table_of, vld

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGOS = draw_logos()
INDEX = LogoIndex.of(LOGOS)


def drawn(shots: list[Shot]) -> dict[int, frozenset[str]]:
    return {shot.number: shot.logos for shot in shots}


def seen_alone(shot: Shot) -> set[str]:
    """The same detection in one step."""
    shares = INDEX.matches(sift_descriptors(shot.pixels), DISTANCE) / INDEX.sizes
    return {name for name, share in zip(INDEX.names, shares, strict=True) if share > SHARE}


def test_precision_and_recall_are_at_least_95_percent() -> None:
    """Frames of 40 scenes: 2.2 s apart, each is of another one."""
    video = Video(seed=7, logos=LOGOS, frames_per_second=(1 / 2.2, 1 / 2.2))
    shots = list(video.shots(90.0))
    score = Score.of(drawn(shots), {shot.number: seen_alone(shot) for shot in shots})
    assert score.right > 30, "the scenes have logos"
    assert len(set().union(*drawn(shots).values())) > 10
    assert score.precision >= 0.95
    assert score.recall >= 0.95


@pytest.mark.spark
def test_the_pipeline_finds_them_too_with_its_index_in_parts(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept = spool(), Kept()
    shots = list(Video(seed=3, logos=LOGOS, frames_per_second=(2.5, 2.5)).shots(6.0))
    pipeline = vld(
        sources.FromSpool(source, SCHEMA), kept.sink, index=INDEX, parts=3, slots={"extract": 2, "match": 2}
    )
    # Turns are not cut short: the first one has the workers to start, and seems slow.
    runs = engine(grain="10m")
    runs.submit(pipeline)
    for first, size in ((0, 1), (1, 4), (5, 3), (8, 1), (9, 99)):
        source.append(table_of(shots[first : first + size]))
        if first in (0, 5):
            runs.drain(120)
    runs.drain(120)
    runs.stop()
    assert kept.column("frame") == list(range(len(shots))), "each frame is told of once"
    found = {row["frame"]: row["logos"] for row in kept.rows}
    assert {frame: set(logos) for frame, logos in found.items()} == {s.number: seen_alone(s) for s in shots}
    score = Score.of(drawn(shots), found)
    assert score.right > 5
    assert min(score.precision, score.recall) >= 0.95


def test_it_is_a_chain_of_three_stages_with_the_slots_asked_for(tmp_path: Path) -> None:
    source = sources.Files(tmp_path, schema=SCHEMA)
    graph = cut(vld(source, Kept().sink, index=INDEX, slots={"match": 11}))
    assert [stage.name for stage in graph.stages] == [f"vld.{name}" for name in STAGES]
    assert [stage.parallelism for stage in graph.stages] == [1, 11, 1]
