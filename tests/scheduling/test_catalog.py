import pytest

from penstock.scheduling import (
    POLICIES,
    Edf,
    Fifo,
    Llf,
    LongestQueue,
    MinLatency,
    MinMemory,
    Random,
    Sjf,
    TokenShare,
    UnknownPolicy,
    check_policy,
    policy_named,
)


def test_policies_are_found_by_name() -> None:
    assert policy_named("fifo") == Fifo()
    assert policy_named("longest-queue") == LongestQueue()
    assert policy_named("min-latency") == MinLatency()
    assert policy_named("min-memory") == MinMemory()
    assert policy_named("random") == Random(seed=0)
    assert policy_named("llf") == Llf(semantics=True)
    assert [type(policy_named(name)) for name in ("edf", "sjf")] == [Edf, Sjf]
    assert policy_named("token-share") == TokenShare()


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_of_the_catalog_keeps_the_contract(name: str) -> None:
    check_policy(policy_named(name), seed=11)


def test_an_unknown_policy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UnknownPolicy) as error:
        policy_named("lifo")
    assert str(error.value) == (
        "a policy must be one of batchit, edf, fifo, llf, longest-queue, min-latency, min-memory, random, "
        "sjf, token-share, got 'lifo': nothing was scheduled"
    )
    assert error.value.name == "lifo"
