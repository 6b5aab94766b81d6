"""How often an input passes each stage, and how fast rows come to it."""

from __future__ import annotations

import pytest

from penstock.model.flow import Read, entangled, rates_of, visits

ONE = {"": 12.0}
PATTERNS = {
    "generate": (Read("", 1.0),),
    "gather": (Read("generate", 4.0), Read("detect", 0.25)),
    "detect": (Read("gather", 1.0),),
    "report": (Read("detect", 0.75),),
}


def test_rows_of_an_input_that_share_turns_pay_once_and_go_round_a_loop_as_often_as_they_do() -> None:
    assert visits(PATTERNS, ONE) == pytest.approx(
        {"generate": 1.0, "gather": 4 / 3, "detect": 4 / 3, "report": 1.0}
    )


def test_rates_count_every_row() -> None:
    rates = rates_of(PATTERNS, ONE)
    assert rates == pytest.approx({"generate": 12.0, "gather": 76.0, "detect": 64.0, "report": 64.0})


def test_a_stage_whose_rows_never_come_to_a_sink_is_not_paid_for() -> None:
    reads = {"read": (Read("", 1.0),), "keep": (Read("read", 1.0),), "drop": (Read("read", 0.0),)}
    assert visits(reads, ONE) == {"read": 1.0, "keep": 1.0, "drop": 0.0}
    assert visits({"drop": (Read("", 0.0),)}, ONE) == {}


JOIN = {
    "a": (Read("@many", 1.0),),
    "b": (Read("@few", 1.0),),
    "join": (Read("a", 1.0), Read("b", 1.0)),
}


def test_each_source_brings_its_own_rows_to_those_that_read_it() -> None:
    sources = {"@many": 100.0, "@few": 1.0}
    assert rates_of(JOIN, sources) == {"a": 100.0, "b": 1.0, "join": 101.0}
    assert visits(JOIN, sources) == pytest.approx({"a": 100 / 101, "b": 1 / 101, "join": 1.0})


def test_a_stage_that_reads_two_sources_has_the_rows_of_both() -> None:
    reads = {"both": (Read("@many", 1.0), Read("@few", 4.0)), "end": (Read("both", 1.0),)}
    assert rates_of(reads, {"@many": 100.0, "@few": 1.0}) == {"both": 101.0, "end": 104.0}
    assert visits(reads, {"@many": 100.0, "@few": 1.0}) == {"both": 1.0, "end": 1.0}


def test_inputs_that_are_read_twice_pay_at_both_readers_and_go_one_way_where_rows_are_dropped() -> None:
    def fork(alerts: float) -> dict[str, tuple[Read, ...]]:
        return {"read": (Read("", 1.0),), "alerts": (Read("read", alerts),), "archive": (Read("read", 1.0),)}

    assert visits(fork(1.0), ONE) == {"read": 1.0, "alerts": 1.0, "archive": 1.0}
    assert visits(fork(0.25), ONE) == pytest.approx({"read": 1.0, "alerts": 0.2, "archive": 0.8})
    assert (entangled(fork(1.0)), entangled(fork(0.25))) == (False, True)


def test_loops_entangle_inputs_and_joins_do_not() -> None:
    assert entangled(PATTERNS)
    assert not entangled(JOIN)
    assert entangled({"step": (Read("", 1.0), Read("step", 0.5))})
