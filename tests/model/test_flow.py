"""How often an input passes each stage, and how fast rows come to it."""

from __future__ import annotations

import pytest

from penstock.model.flow import Read, rates_of, visits

PATTERNS = {
    "generate": (Read("", 1.0),),
    "gather": (Read("generate", 4.0), Read("detect", 0.25)),
    "detect": (Read("gather", 1.0),),
    "report": (Read("detect", 0.75),),
}


def test_rows_of_an_input_that_share_turns_pay_once_and_go_round_a_loop_as_often_as_they_do() -> None:
    assert visits(PATTERNS) == pytest.approx(
        {"generate": 1.0, "gather": 4 / 3, "detect": 4 / 3, "report": 1.0}
    )


def test_rates_count_every_row() -> None:
    rates = rates_of(PATTERNS, 12.0)
    assert rates == pytest.approx({"generate": 12.0, "gather": 76.0, "detect": 64.0, "report": 64.0})


def test_a_stage_whose_rows_never_come_to_a_sink_is_not_paid_for() -> None:
    reads = {"read": (Read("", 1.0),), "keep": (Read("read", 1.0),), "drop": (Read("read", 0.0),)}
    assert visits(reads) == {"read": 1.0, "keep": 1.0, "drop": 0.0}
    assert visits({"drop": (Read("", 0.0),)}) == {}
