"""Logos to look for: drawn by chance, the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.vision.opencv import opencv

LOGOS = 16
SIDE = 96
SHAPES = 14


def draw_logos(count: int = LOGOS, *, side: int = SIDE, seed: int = 1) -> dict[str, np.ndarray]:
    """So many grey pictures by name, all different: rings, bars, triangles and letters over each other."""
    cv2 = opencv()
    return {
        f"logo-{number:02}": _drawn(cv2, np.random.default_rng([seed, number]), side)
        for number in range(count)
    }


def _drawn(cv2: Any, chance: np.random.Generator, side: int) -> np.ndarray:
    picture = np.full((side, side), int(chance.integers(200, 256)), np.uint8)
    for _ in range(SHAPES):
        shade = int(chance.integers(0, 256))
        first, second, third = ((int(x), int(y)) for x, y in chance.integers(4, side - 4, (3, 2)))
        match int(chance.integers(4)):
            case 0:
                cv2.circle(picture, first, int(chance.integers(5, side // 4)), shade, thickness=4)
            case 1:
                cv2.rectangle(picture, first, second, shade, thickness=-1)
            case 2:
                cv2.fillPoly(picture, [np.array([first, second, third], np.int32)], shade)
            case _:
                letters = "".join(chance.choice(list("ABEGKMRSXZ&@#"), 2))
                cv2.putText(picture, letters, first, cv2.FONT_HERSHEY_SIMPLEX, 0.9, shade, 2)
    return picture
