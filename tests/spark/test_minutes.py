import json
from pathlib import Path

import pytest

from penstock.measure.minutes import StageMinute
from penstock.spark.bookkeeping import Books
from penstock.spark.kept_lines import KeptLines
from penstock.spark.minutes import Minutes

NOON = 1_700_006_400.0


def books(stage: str, at: float = NOON, slots: int = 1) -> Books:
    return Books(stage, "p", "direct", at, slots)


@pytest.fixture
def minutes(tmp_path: Path) -> Minutes:
    return Minutes(KeptLines(tmp_path, "minutes"), slots=lambda: 2, now=NOON + 5.0)


def kept(folder: Path) -> list[StageMinute]:
    path = folder / "minutes.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [StageMinute.from_json(json.loads(line)) for line in lines]


def test_figures_are_written_when_a_minute_has_ended(minutes: Minutes, tmp_path: Path) -> None:
    parse = books("p.parse", NOON + 6.0, slots=2)
    parse.waiting(100, NOON + 6.0)
    parse.began(NOON + 20.0, 0)
    parse.abandoned(NOON + 50.0)
    minutes.look(NOON + 30.0, [parse])
    assert kept(tmp_path) == []
    minutes.look(NOON + 60.5, [parse])
    [first] = kept(tmp_path)
    assert (first.stage, first.begin, first.pool_slots) == ("p.parse", NOON, 2)
    assert first.figures.seconds == pytest.approx(54.5)
    assert first.figures.slot_seconds == pytest.approx(60.0)
    assert first.figures.arrival_rows_per_second == pytest.approx(100 / 54.5)


def test_each_minute_tells_only_of_itself(minutes: Minutes, tmp_path: Path) -> None:
    parse = books("p.parse")
    for seconds in range(1, 182):
        if seconds < 60:
            parse.waiting(seconds, NOON + seconds)
        minutes.look(NOON + seconds, [parse])
    told = kept(tmp_path)
    assert [each.begin for each in told] == [NOON, NOON + 60.0, NOON + 120.0]
    assert [each.figures.seconds for each in told] == pytest.approx([60.0, 60.0, 60.0])
    assert [each.figures.arrival_rows_per_second for each in told] == pytest.approx([59 / 60, 0.0, 0.0])
    assert [each.figures.rows_waiting for each in told] == [59, 59, 59]


def test_a_stage_that_has_gone_is_told_of_once_more(minutes: Minutes, tmp_path: Path) -> None:
    gone, stays = books("p.gone"), books("p.stays")
    minutes.look(NOON + 10.0, [gone, stays])
    minutes.look(NOON + 61.0, [stays])
    minutes.look(NOON + 121.0, [stays])
    assert [each.stage for each in kept(tmp_path)] == ["p.gone", "p.stays", "p.stays"]


def test_the_last_look_writes_a_minute_that_has_not_ended(minutes: Minutes, tmp_path: Path) -> None:
    parse = books("p.parse", NOON + 5.0)
    minutes.look(NOON + 6.0, [parse])
    minutes.look(NOON + 7.0, [], last=True)
    [told] = kept(tmp_path)
    assert (told.stage, told.figures.seconds) == ("p.parse", 2.0)
