from pathlib import Path

from penstock.plan.arrival_history import DAY_SECONDS, ArrivalHistory
from penstock.spark.kept_arrivals import KeptArrivals


def known(counts: int) -> ArrivalHistory:
    history = ArrivalHistory()
    for second in range(counts + 1):
        history.look(float(second), {"read": 10 * second})
    return history


def test_another_run_knows_how_rows_came(tmp_path: Path) -> None:
    kept, history = KeptArrivals(tmp_path), known(60)
    kept.keep(history, 60.0)
    assert history.fresh == []
    again = ArrivalHistory()
    KeptArrivals(tmp_path).restore(again, 100.0)
    assert again.counts == history.counts
    assert again.fresh == []


def test_part_of_a_minute_is_kept_at_the_end_only(tmp_path: Path) -> None:
    kept, history = KeptArrivals(tmp_path), known(7)
    kept.keep(history, 7.0)
    assert not (tmp_path / "arrivals.jsonl").exists()
    kept.keep(history, 7.0, last=True)
    assert (tmp_path / "arrivals.jsonl").read_text().count("\n") == 1


def test_what_is_older_than_a_day_or_cut_short_does_not_count(tmp_path: Path) -> None:
    KeptArrivals(tmp_path).keep(known(60), 60.0)
    with (tmp_path / "arrivals.jsonl").open("a") as file:
        file.write('{"ended": 200000.0, "rows": [1.0, 2.0]}\n[1]\n{"ended": 200000.0, "ro')
    again = ArrivalHistory()
    KeptArrivals(tmp_path).restore(again, 60.0 + DAY_SECONDS)
    assert again.counts == [1.0, 2.0]
