"""OpenCV, which only some installations have."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError

if TYPE_CHECKING:
    import numpy as np

DESCRIPTOR = 128
"""Numbers of a SIFT descriptor, each from 0 to 255."""


class MissingOpenCV(PenstockError):
    """What needs OpenCV was asked for where it is not."""

    def __init__(self) -> None:
        super().__init__(
            "operators on pictures must have OpenCV, but it is not installed: "
            "pip install 'penstock[vision]' installs it"
        )


def opencv() -> Any:
    """The module `cv2`, in one thread: what runs beside it is for Spark to say."""
    try:
        import cv2
    except ImportError as error:
        raise MissingOpenCV from error
    cv2.setNumThreads(1)
    return cv2


@cache
def _sift() -> Any:
    return opencv().SIFT_create()


def sift_descriptors(grey: np.ndarray) -> np.ndarray:
    """The descriptors of a grey picture, one in each row, as bytes: OpenCV's are whole numbers."""
    import numpy as np

    _, found = _sift().detectAndCompute(grey, None)
    return np.empty((0, DESCRIPTOR), np.uint8) if found is None else found.astype(np.uint8)
