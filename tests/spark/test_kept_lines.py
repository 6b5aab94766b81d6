from pathlib import Path

from penstock.spark.kept_lines import KeptLines


def test_lines_are_appended_over_restarts(tmp_path: Path) -> None:
    KeptLines(tmp_path, "notes").add([{"a": 1}, {"a": 2}])
    KeptLines(tmp_path, "notes").add([{"a": 3}])
    assert (tmp_path / "notes.jsonl").read_text() == '{"a": 1}\n{"a": 2}\n{"a": 3}\n'


def test_at_most_two_files_are_kept(tmp_path: Path) -> None:
    lines = KeptLines(tmp_path, "notes", limit_bytes=100)
    for number in range(1000):
        lines.add([{"number": number}])
    kept = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert kept.keys() == {"notes.jsonl", "notes.1.jsonl"}
    assert max(kept.values()) <= 100 + len('{"number": 999}\n')
    assert (tmp_path / "notes.jsonl").read_text().endswith('{"number": 999}\n')
