"""Finding known pictures in frames: SIFT features, matched by L2 distance to those of the pictures.

The operators of DRS's logo detection (section V-A). They run in Python workers, a batch of rows at a
time, and need OpenCV: `pip install 'penstock[vision]'`.
"""

from penstock.operators.vision.aggregate import aggregate_by_frame
from penstock.operators.vision.extract import extract_features
from penstock.operators.vision.index import LogoIndex
from penstock.operators.vision.match import match_features
from penstock.operators.vision.opencv import MissingOpenCV, opencv

__all__ = [
    "LogoIndex",
    "MissingOpenCV",
    "aggregate_by_frame",
    "extract_features",
    "match_features",
    "opencv",
]
