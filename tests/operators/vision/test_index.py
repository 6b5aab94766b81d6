"""Matching: by distance, in parts that add up, and what is missing is said."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.operators.vision import LogoIndex, MissingOpenCV, aggregate_by_frame, extract_features, opencv
from penstock.operators.vision.opencv import DESCRIPTOR, sift_descriptors


def index_of(sizes: list[int], seed: int = 1) -> LogoIndex:
    chance = np.random.default_rng(seed)
    owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    descriptors = chance.integers(0, 256, (len(owners), DESCRIPTOR), dtype=np.uint8)
    return LogoIndex(tuple(f"logo {place}" for place in range(len(sizes))), descriptors, owners)


def test_a_descriptor_of_a_logo_counts_once_and_only_within_the_distance() -> None:
    index = index_of([3, 2])
    moved = index.descriptors[[0, 0, 1, 4]].astype(int)
    moved[:, 5] = np.where(moved[:, 5] > 127, moved[:, 5] - 9, moved[:, 5] + 9)
    seen = moved.astype(np.uint8)
    assert index.matches(seen, 9.0).tolist() == [2, 1], "two features that match one descriptor count once"
    assert index.matches(seen, 8.9).tolist() == [0, 0]
    assert index.matches(np.empty((0, DESCRIPTOR), np.uint8), 1e9).tolist() == [0, 0]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 9), st.integers(0, 99))
def test_parts_of_an_index_find_together_what_the_whole_finds(
    sizes: list[int], parts: int, seed: int
) -> None:
    index = index_of(sizes, seed)
    chance = np.random.default_rng(seed)
    seen = chance.integers(0, 256, (7, DESCRIPTOR), dtype=np.uint8)
    # Random descriptors are about 1,180 apart: the limit lies in their midst.
    whole = index.matches(seen, 1140.0)
    assert (
        sum(index.part(number, parts).matches(seen, 1140.0) for number in range(parts)).tolist()
        == whole.tolist()
    )
    by_hand = [
        min(float(np.linalg.norm(ours.astype(float) - each)) for each in seen.astype(float)) <= 1140.0
        for ours in index.descriptors
    ]
    assert np.bincount(index.owners[np.array(by_hand)], minlength=len(sizes)).tolist() == whole.tolist()


def test_a_picture_without_features_has_no_descriptors_and_makes_no_logo() -> None:
    plain = np.full((64, 64), 200, np.uint8)
    assert sift_descriptors(plain).shape == (0, DESCRIPTOR)
    with pytest.raises(PenstockError) as error:
        LogoIndex.of({"sheet": plain})
    assert str(error.value) == (
        "logos must have features to be found by, got none in sheet: they would never be found"
    )


def test_without_opencv_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingOpenCV) as error:
        opencv()
    assert str(error.value) == (
        "operators on pictures must have OpenCV, but it is not installed: "
        "pip install 'penstock[vision]' installs it"
    )
    with pytest.raises(MissingOpenCV):
        extract_features()


def test_settings_that_find_nothing_are_refused() -> None:
    with pytest.raises(PenstockError) as parts:
        extract_features(0)
    assert str(parts.value) == "an index must have 1 part or more, got 0: nothing would be matched"
    with pytest.raises(PenstockError) as share:
        aggregate_by_frame(index_of([1]), share=1.0)
    assert str(share.value) == "share must be from 0 to below 1, got 1: no logo could ever be there"
