"""The video: the right rates, logos that are where they are said to be, the same for the same seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from penstock.workloads.vld import ARROW, Video, draw_logos, table_of

LOGOS = draw_logos()


def test_frames_come_at_1_to_25_a_second_with_a_mean_of_13() -> None:
    moments = np.array(Video(logos=LOGOS).moments(400.0))
    counts = np.bincount(moments[moments < 400].astype(int), minlength=400)
    assert counts.mean() == pytest.approx(13.0, rel=0.06)
    assert 1 <= counts.min() <= 3
    assert 23 <= counts.max() <= 26
    assert (np.diff(moments) > 0).all()
    steady = Video(logos=LOGOS, frames_per_second=(6.0, 6.0)).moments(10.0)
    assert np.diff(steady) == pytest.approx(1 / 6)
    assert len(steady) in (59, 60)


def test_the_same_seed_gives_the_same_video_and_another_seed_another() -> None:
    one, again, other = (list(Video(seed=seed, logos=LOGOS).shots(1.0)) for seed in (4, 4, 5))
    assert all((a.pixels == b.pixels).all() for a, b in zip(one, again, strict=True))
    assert [shot.logos for shot in one] == [shot.logos for shot in again]
    assert len(other) != len(one) or any(
        (a.pixels != b.pixels).any() for a, b in zip(one, other, strict=True)
    )


def test_logos_move_over_noise_that_changes_from_frame_to_frame() -> None:
    still = Video(logos=LOGOS, most_logos=1, noise=0.0, frames_per_second=(10.0, 10.0))
    shots = [shot for shot in still.shots(20.0) if shot.logos]
    assert 0 < len(shots) < 200, "some scenes have no logo"
    moved = [(a.pixels != b.pixels).mean() for a, b in pairwise(shots)]
    assert min(moved) > 0.005
    noisy = next(Video(logos=LOGOS, most_logos=1, frames_per_second=(10.0, 10.0)).shots(0.2))
    plain = next(still.shots(0.2))
    apart = noisy.pixels.astype(float) - plain.pixels
    assert apart.std() == pytest.approx(6.0, rel=0.1)


def test_frames_are_rows_of_the_schema() -> None:
    shots = list(Video(logos=LOGOS, frames_per_second=(5.0, 5.0)).shots(1.0))
    table = table_of(shots)
    assert table.schema == ARROW
    assert table["frame"].to_pylist() == [shot.number for shot in shots]
    assert {len(pixels) for pixels in table["pixels"].to_pylist()} == {240 * 384}


def test_logos_are_all_different_and_the_same_again() -> None:
    assert len(LOGOS) == 16
    assert len({picture.tobytes() for picture in LOGOS.values()}) == 16
    assert all((picture == draw_logos()[name]).all() for name, picture in LOGOS.items())
