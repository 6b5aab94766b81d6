from penstock.scheduling import MinMemory, StageView, check_policy


def view(steepness: float | None) -> StageView:
    return StageView("s", "p", 10, ready_since=5.0, oldest_arrival=5.0, steepness=steepness)


def test_min_memory_keeps_the_contract_of_policies() -> None:
    check_policy(MinMemory())


def test_the_stage_that_reduces_most_per_second_goes_first() -> None:
    assert MinMemory().priority(view(9.0), 7.0) < MinMemory().priority(view(0.5), 7.0)


def test_a_stage_that_is_not_known_yet_goes_before_any_that_is() -> None:
    assert MinMemory().priority(view(None), 7.0) < MinMemory().priority(view(1e300), 7.0)


def test_a_stage_that_makes_more_of_its_rows_is_known_and_goes_last() -> None:
    priorities = [MinMemory().priority(view(each), 7.0) for each in (None, 0.5, 0.0, -2.0, -60.0)]
    assert priorities == sorted(priorities)
    assert len(set(priorities)) == 5


def test_the_reason_gives_the_steepness() -> None:
    assert MinMemory().reason(view(4.25)) == "steepest reduction, 4.25 rows gone per second of work"
    assert MinMemory().reason(view(19_000.4)) == "steepest reduction, 19,000 rows gone per second of work"
    assert MinMemory().reason(view(-2.5)) == "least growth, 2.5 rows more per second of work"
    assert MinMemory().reason(view(None)) == "its reduction is not known yet"
