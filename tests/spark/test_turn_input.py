"""The bookkeeping of a turn's rows, without Spark."""

import pyarrow as pa
import pytest

from penstock.queues.segment import Arrivals
from penstock.spark.results import Dating, split_table, window_ends
from penstock.spark.turn_input import Portion, TurnInput


def portion(came: float, reached: float, rows: int = 10) -> Portion:
    return Portion(rows, Arrivals.at(came, rows), came, {"ts": (reached - 1, reached)})


def test_a_window_counts_from_the_arrival_that_completed_it() -> None:
    took = TurnInput((portion(100.0, 10.5), portion(101.0, 11.5), portion(102.0, 12.5)))
    assert took.completed([11.0, 12.0], "ts", 0.0).bins == ((101.0, 1.0), (102.0, 1.0))


def test_lateness_allowed_moves_the_completion_to_a_later_arrival() -> None:
    took = TurnInput((portion(100.0, 10.5), portion(101.0, 11.5), portion(102.0, 12.5)))
    assert took.completed([11.0], "ts", 1.0).bins == ((102.0, 1.0),)


def test_an_event_that_comes_early_completes_the_windows_of_those_behind_it() -> None:
    took = TurnInput((portion(100.0, 20.0), portion(101.0, 11.5)))
    assert took.completed([11.0], "ts", 0.0).bins == ((100.0, 1.0),)


def test_a_window_that_no_row_of_the_turn_completed_counts_from_the_newest_arrival() -> None:
    took = TurnInput((portion(100.0, 10.5), portion(103.0, 10.6)))
    assert took.completed([11.0], "ts", 0.0).bins == ((103.0, 1.0),)


def test_the_times_of_a_turn_are_means_over_rows() -> None:
    took = TurnInput((portion(10.0, 1.0, rows=30), portion(12.0, 2.0, rows=10)))
    times = took.times(last_turn_end=11.0, granted_at=12.5, visible_at=13.0)
    assert times.queue_seconds == pytest.approx(0.75)
    assert times.schedule_seconds == pytest.approx((30 * 1.5 + 10 * 0.5) / 40)
    assert times.compute_seconds == pytest.approx(0.5)


def test_results_with_a_window_struct_are_dated_by_it_and_others_by_their_input() -> None:
    took = TurnInput((portion(100.0, 10.5), portion(101.0, 11.5)))
    ends = pa.array([{"start": 10_000_000, "end": 11_000_000}])
    moments = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])
    table = pa.table({"window": ends.cast(moments), "n": [3]})
    assert window_ends(table) == [11.0]
    assert Dating(took, "ts", 0.0).arrivals(table).bins == ((101.0, 1.0),)
    assert Dating(took, "ts", 0.0).arrivals(table.drop_columns(["window"])) == took.arrivals


def test_dead_letters_are_split_from_good_rows() -> None:
    table = pa.table({"x": [1, None, 3], "dead_letter": [None, "bad", None], "raw": ["a", "b", "c"]})
    good, dead = split_table(table)
    assert good.to_pydict() == {"x": [1, 3]}
    assert dead.to_pydict() == {"dead_letter": ["bad"], "raw": ["b"]}
