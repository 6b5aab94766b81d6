"""Keys of requests: the newest are known, whatever the clock says; those before them are forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.ingest import request_keys
from penstock.ingest.request_keys import FILE_SECONDS, KEPT_SECONDS, RequestKeys, Taken

HOUR = 500_000.0 * FILE_SECONDS


def taken(number: int) -> Taken:
    return Taken(f"k{number}", "digest", 1)


def known(keys: RequestKeys, count: int) -> list[int]:
    return [number for number in range(count) if keys.find(f"k{number}", "digest") is not None]


def test_the_newest_keys_are_known_also_when_an_hour_begins_and_no_more_than_the_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_keys, "MOST_KEYS", 4)
    keys = RequestKeys(tmp_path, [], HOUR)
    for number in range(6):
        keys.keep([taken(number)], HOUR + 1.0)
    assert known(keys, 7) == [2, 3, 4, 5]
    keys.keep([taken(6)], HOUR + FILE_SECONDS)
    assert known(keys, 7) == [3, 4, 5, 6]
    assert known(RequestKeys(tmp_path, [], HOUR + FILE_SECONDS), 7) == [3, 4, 5, 6]


def test_a_key_is_known_for_a_day_and_then_forgotten_while_the_program_runs(tmp_path: Path) -> None:
    keys = RequestKeys(tmp_path, [], HOUR)
    keys.keep([taken(0)], HOUR)
    keys.keep([taken(1)], HOUR + KEPT_SECONDS)
    assert known(keys, 3) == [0, 1]
    keys.keep([taken(2)], HOUR + KEPT_SECONDS + FILE_SECONDS)
    assert known(keys, 3) == [1, 2]
