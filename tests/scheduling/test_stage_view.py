import pytest

from penstock.scheduling import StageView, StageViewError


def view(rows: int = 0, slots: int = 1, flush: bool = False) -> StageView:
    return StageView("a", "p", rows, ready_since=0.0, oldest_arrival=0.0, slots=slots, flush=flush)


def test_rows_or_a_flush_are_work() -> None:
    assert view(rows=1).has_work
    assert view(flush=True).has_work
    assert not view().has_work


def test_a_stage_that_needs_no_slot_is_refused() -> None:
    with pytest.raises(StageViewError) as error:
        view(slots=0)
    assert str(error.value) == "stage 'a' must need at least 1 slot, got 0: a turn occupies one"
    assert error.value.stage == "a"


def test_a_negative_queue_is_refused() -> None:
    with pytest.raises(StageViewError) as error:
        view(rows=-3)
    assert (
        str(error.value) == "rows waiting at stage 'a' must be zero or more, got -3: its queue has miscounted"
    )
