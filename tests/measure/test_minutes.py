import json
from dataclasses import replace

from penstock.measure.minutes import StageMinute, minute_of
from penstock.measure.stage_meter import StageMeter

NOON = 1_700_006_400.0  # 2023-11-15 00:00 UTC
MINUTE = StageMinute(NOON + 120.0, "p.parse", 2, StageMeter(0.0).figures(60.0))


def test_a_minute_survives_json() -> None:
    assert StageMinute.from_json(json.loads(json.dumps(MINUTE.to_json()))) == MINUTE


def test_a_minute_begins_with_the_clock() -> None:
    assert [minute_of(NOON + seconds) - NOON for seconds in (0.0, 59.9, 60.0, 61.0)] == [0.0, 0.0, 60.0, 60.0]
    assert MINUTE.clock == "00:02"


def test_the_slot_share_is_that_of_the_whole_pool() -> None:
    assert replace(MINUTE, figures=replace(MINUTE.figures, slot_seconds=30.0)).slot_share == 0.25
    assert replace(MINUTE, figures=replace(MINUTE.figures, seconds=0.0)).slot_share == 0.0
