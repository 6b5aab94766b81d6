from __future__ import annotations

import json
from dataclasses import replace

import pytest

from penstock.errors import PenstockError
from penstock.plan.slot_changes import SlotChange, SlotDecision, slot_line_from_json

CHANGE = SlotChange(1_700_000_000.25, "p.w", 1, 2, "asked for", "restarted", 1.234)
DECISION = SlotDecision(
    1_700_000_060.0, "p", False, "2 slots are where they help most", {"p.w": 2}, {"p.w": 2}, 0.25, None,
    {"p.w": "bulk"}, {"p.w": 0.124},
)  # fmt: skip


@pytest.mark.parametrize("line", [CHANGE, DECISION])
def test_a_line_comes_back_from_its_file_as_it_was(line: SlotChange | SlotDecision) -> None:
    assert slot_line_from_json(json.loads(json.dumps(line.to_json()))) == line


def test_lines_say_when_what_and_why() -> None:
    assert CHANGE.line() == (
        "22:13:20.250  slots  p.w 1 -> 2: asked for; its state was divided anew, 1.23 s without a turn"
    )
    assert DECISION.line() == (
        "22:14:20.000  keep  p: 2 slots are where they help most; slots: w 2; "
        "E[T] measured 0.25 s, estimated endless; by w bulk (off by 12%)"
    )
    assert replace(DECISION, model_errors={}).line().endswith("; by w bulk")
    assert (CHANGE.line({"p.x"}), DECISION.line({"q.w"})) == ("", "")


def test_a_line_of_another_kind_is_refused() -> None:
    with pytest.raises(PenstockError) as refused:
        slot_line_from_json({"kind": "wish"})
    assert str(refused.value) == "a line of slots must be a change or a decision, got 'wish': it says nothing"
