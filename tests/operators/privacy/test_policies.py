from __future__ import annotations

import multiprocessing
from datetime import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from penstock.errors import PenstockError
from penstock.operators.privacy import Policy, PolicyTable

NAMES = some.text(min_size=1, max_size=8)
TIMES = some.none() | some.times().map(lambda at: at.replace(second=0, microsecond=0))


@some.composite
def policies(draw: some.DrawFn) -> Policy:
    begin, end = draw(TIMES), draw(TIMES)
    if end == (begin or time(0)):
        end = None
    purposes = draw(some.lists(NAMES, min_size=1, max_size=3))
    return Policy(draw(NAMES), draw(NAMES), purposes, begin, end)


@pytest.fixture
def table(tmp_path: Path) -> PolicyTable:
    return PolicyTable(tmp_path / "policies.jsonl")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(some.lists(policies(), max_size=5))
def test_policies_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, written: list[Policy]
) -> None:
    table = PolicyTable(tmp_path_factory.getbasetemp() / "written.jsonl")
    table.write(written)
    assert table.read() == written


def test_allowing_adds_to_what_is_allowed_and_the_same_policy_once(table: PolicyTable) -> None:
    table.allow(Policy("ann", "cafe", "greeting"))
    table.allow(Policy("bob", "cafe", ["greeting"]), Policy("ann", "cafe", ["greeting"]))
    assert table.read() == [Policy("ann", "cafe", ["greeting"]), Policy("bob", "cafe", ["greeting"])]


ALL = (
    Policy("ann", "cafe", ["greeting", "statistics"]),
    Policy("ann", "cafe", ["greeting"], "08:00", "12:00"),
    Policy("ann", "shop", ["greeting"]),
    Policy("bob", "cafe", ["greeting"]),
)


@pytest.mark.parametrize(
    ("revoked", "changed", "left"),
    [
        (("ann",), 3, ALL[3:]),
        (("ann", "cafe"), 2, ALL[2:]),
        (("ann", "cafe", "greeting"), 2, (Policy("ann", "cafe", ["statistics"]), *ALL[2:])),
        (("ann", None, ["greeting", "statistics"]), 3, ALL[3:]),
        (("Ann",), 0, ALL),
    ],
    ids=["everything", "one consumer", "one purpose", "purposes", "another spelling"],
)
def test_revoking_takes_back_what_it_names_and_nothing_else(
    table: PolicyTable, revoked: tuple[Any, ...], changed: int, left: tuple[Policy, ...]
) -> None:
    table.write(ALL)
    assert table.revoke(*revoked) == changed
    assert table.read() == list(left)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("", "cafe", ["x"]), "the subject of a policy must be a text, got '': it would allow nobody"),
        (("ann", None, ["x"]), "the consumer of a policy must be a text, got None: it would allow nobody"),
        (
            ("ann", "cafe", []),
            "the purposes of a policy must be texts, one or more, got (): it would allow nothing",
        ),
        (
            ("ann", "cafe", "x", "8:00"),
            "a time of day must be \"HH:MM\", got '8:00': it is not known when the policy holds",
        ),
        (
            ("ann", "cafe", "x", None, time(8, 0, 1)),
            'a time of day must be "HH:MM", got datetime.time(8, 0, 1): '
            "it is not known when the policy holds",
        ),
        (
            ("ann", "cafe", "x", "08:00", "08:00"),
            "from_time and to_time of a policy must differ, got 08:00 for both: "
            "it could mean all day or never",
        ),
    ],
)
def test_a_policy_that_cannot_hold_is_refused(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(PenstockError) as caught:
        Policy(*arguments)
    assert str(caught.value) == text


def test_a_table_that_is_not_there_allows_nobody_and_says_so(table: PolicyTable) -> None:
    with pytest.raises(PenstockError) as caught:
        table.revoke("ann")
    assert str(caught.value) == (
        f"the policy table {table.path} must be readable, but [Errno 2] No such file or directory: "
        f"'{table.path}': nobody is allowed"
    )


def test_a_broken_table_is_not_added_to_but_can_be_written_anew(table: PolicyTable) -> None:
    table.write(ALL)
    Path(table.path).write_bytes(Path(table.path).read_bytes()[:-9])
    with pytest.raises(PenstockError, match=r"line 4 of the policy table .* nobody is allowed"):
        table.allow(Policy("eve", "cafe", "x"))
    table.write(ALL[:1])
    assert table.read() == list(ALL[:1])


def test_a_writer_that_died_in_the_middle_of_writing_changes_nothing(table: PolicyTable) -> None:
    table.write(ALL)
    Path(f"{table.path}.new").write_bytes(b'{"subject": "eve", "consu')
    assert table.read() == list(ALL)
    table.revoke("ann")
    assert table.read() == list(ALL[3:])


def _allow(path: Path, name: str) -> None:
    for number in range(25):
        PolicyTable(path).allow(Policy(f"{name}{number}", "cafe", "greeting"))


def test_two_processes_that_write_at_once_lose_nothing(table: PolicyTable) -> None:
    processes = multiprocessing.get_context("spawn")
    writers = [processes.Process(target=_allow, args=(Path(table.path), name)) for name in "ab"]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert [each.exitcode for each in writers] == [0, 0]
    found = [policy.subject for policy in table.read()]
    assert sorted(found) == sorted(f"{name}{number}" for name in "ab" for number in range(25))
