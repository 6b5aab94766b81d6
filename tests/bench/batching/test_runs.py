from __future__ import annotations

from dataclasses import replace

from matplotlib.figure import Figure

from penstock.bench.batching import plots
from penstock.bench.batching.bench import _table
from penstock.bench.batching.planning import planning_milliseconds, some_workflow
from penstock.bench.batching.runs import Run, highest_rate
from penstock.measure.batch_costs import BatchCost

PRODUCTS = {"alerts": {"in_time": 1.0, "p99": 0.2}, "kept": {"in_time": 0.5, "p99": 40.0}}
RUN = Run("batchit", 200.0, 0.75, PRODUCTS, {"planning_seconds": 0.2})


def _tried(first: float, most: float, **how: float) -> tuple[float, list[float]]:
    tried: list[float] = []

    def held(rate: float) -> bool:
        tried.append(round(rate, 1))
        return rate <= most

    return round(highest_rate(first, held, **how), 1), tried  # type: ignore[arg-type]


def test_the_search_for_a_rate_goes_up_by_steps_and_down_by_leaps_and_halves() -> None:
    assert _tried(100.0, 160.0) == (156.2, [100.0, 125.0, 156.2, 195.3])
    assert _tried(50.0, 33.0, back=2) == (32.0, [50.0, 32.0, 40.0])
    assert _tried(100.0, 8.0, back=2) == (6.9, [100.0, 64.0, 26.2, 4.4, 10.7, 6.9, 8.6])
    assert _tried(100.0, 0.0, least=30.0) == (0.0, [100.0, 32.8])


def test_a_rate_is_held_with_nearly_all_in_time() -> None:
    assert not RUN.held
    assert replace(RUN, in_time=0.9991).held
    assert str(RUN) == "75.00% in time (alerts 100.0%, kept 50.0%)"


def test_tables_and_pictures_show_all_runs() -> None:
    table = _table("rates", [RUN])
    assert table.rows == [["batchit", "200", "75.00%", "100.0% / 0.20", "50.0% / 40.00"]]
    never = _table("rates", [replace(RUN, products={"alerts": {"in_time": float("nan"), "p99": 1e6}})])
    assert never.rows == [["batchit", "200", "75.00%", "none due / never"]]
    figure = Figure()
    plots.draw_rates(figure, [RUN, replace(RUN, side="single", rate=1.0)])
    (axes,) = figure.axes
    labels = [line.get_label() for line in axes.lines]
    assert labels == ["planned (BatchIT)", "no batching: one row a turn, first come first served"]
    figure = Figure()
    plots.draw_costs(figure, [BatchCost("p.read", 1, 8, 0.1), BatchCost("p.read", 100, 8, 0.2)])
    assert list(figure.axes[0].lines[0].get_ydata()) == [10.0, 500.0]
    figure = Figure()
    plots.draw_triggers(figure, {"1s": RUN, "conditional": RUN})
    assert [line.get_label() for line in figure.axes[0].lines] == ["1s", "conditional"]
    figure = Figure()
    plots.draw_resources(figure, {"slots": {1: 10.0, 2: 20.0}, "reserve": {0.1: 20.0}})
    assert len(figure.axes) == 2


def test_plans_of_fifty_stages_are_timed() -> None:
    assert len(some_workflow(50, 1).stages) == 50
    assert planning_milliseconds(5).runs == 20
