"""What waits at sources that Spark reads itself."""

from __future__ import annotations

from pathlib import Path

from penstock.spark.backlogs import FilesBacklog


def test_a_file_that_cannot_be_looked_at_is_passed_over_and_the_others_count(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "rows.json").write_text("{}")
    backlog = FilesBacklog(folder, tmp_path / "log")
    backlog.look()
    assert backlog.waiting(0.0).rows == 1
