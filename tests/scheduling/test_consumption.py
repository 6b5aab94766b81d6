import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.scheduling import All, AtMost, Consumption, ConsumptionError, Half, StageView, parse_consumption


def view(rows: int) -> StageView:
    return StageView("s", "p", rows_waiting=rows, ready_since=0.0, oldest_arrival=0.0, flush=True)


@given(st.sampled_from([All(), Half(), AtMost(1), AtMost(50)]), st.integers(0, 10**9))
def test_a_turn_takes_something_of_what_waits_and_never_more(consumption: Consumption, rows: int) -> None:
    assert min(rows, 1) <= consumption.rows(view(rows)) <= rows


@pytest.mark.parametrize(
    ("text", "consumption", "of_101"),
    [
        ("all", All(), 101),
        ("half", Half(), 51),
        ("at-most-50", AtMost(50), 50),
        ("at-most-500", AtMost(500), 101),
    ],
)
def test_consumptions_are_read_from_their_names(text: str, consumption: Consumption, of_101: int) -> None:
    assert parse_consumption(text) == consumption
    assert parse_consumption(text).rows(view(101)) == of_101


@pytest.mark.parametrize("text", ["", "ALL", "at-most-", "at-most--1", "at-most-5x", "third"])
def test_an_unknown_consumption_is_refused(text: str) -> None:
    with pytest.raises(ConsumptionError) as error:
        parse_consumption(text)
    assert str(error.value) == (
        f"consumption must be 'all', 'half', 'at-most-N' or 'planned', got {text!r}: "
        "a turn would not know how many rows to take"
    )


def test_a_turn_of_no_rows_is_refused() -> None:
    with pytest.raises(ConsumptionError) as error:
        parse_consumption("at-most-0")
    assert str(error.value) == "a turn must take at least 1 row, got at most 0: its queue would never empty"
