"""The benches by name."""

from importlib.util import find_spec

import pytest

from penstock.bench.catalog import BENCHES, UnknownBench, bench_named


def test_every_bench_of_the_table_has_its_module() -> None:
    names = [
        "turns",
        "share",
        "crash",
        "riot",
        "tenants",
        "batching",
        "connect",
        "scaling",
        "elastic",
        "watch",
    ]
    assert list(BENCHES) == names
    for name, bench in BENCHES.items():
        assert bench.module in (f"penstock.bench.{name}", f"penstock.bench.{name}.bench")
        assert find_spec(bench.module) is not None
        assert bench.help


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_can_be_run(name: str) -> None:
    assert callable(bench_named(name).run)


def test_an_unknown_name_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(UnknownBench) as refused:
        bench_named("speed")
    assert str(refused.value) == (
        "a bench must be one of turns, share, crash, riot, tenants, batching, connect, scaling, elastic, "
        "watch, got 'speed': nothing was measured"
    )
    assert refused.value.name == "speed"
