"""Logo detection in a video (VLD; DRS, section V-A): frames, SIFT, matching, aggregation by frame.

`Video` gives frames and the right answer, `vld` is the pipeline, `Score` says how well it did.
"""

from penstock.workloads.vld.detection import STAGES, vld
from penstock.workloads.vld.logos import draw_logos
from penstock.workloads.vld.score import Score
from penstock.workloads.vld.video import ARROW, SCHEMA, Shot, Video, table_of

__all__ = ["ARROW", "SCHEMA", "STAGES", "Score", "Shot", "Video", "draw_logos", "table_of", "vld"]
