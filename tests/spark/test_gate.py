from __future__ import annotations

import threading

from tests.spark.conftest import eventually

from penstock.spark.gate import Gate


def held(gate: Gate) -> threading.Thread:
    thread = threading.Thread(target=gate.hold, daemon=True)
    thread.start()
    return thread


def test_a_hold_ends_with_a_release_and_not_before() -> None:
    gate = Gate()
    thread = held(gate)
    thread.join(0.05)
    assert thread.is_alive()
    gate.release()
    eventually(lambda: not thread.is_alive(), 5)


def test_a_release_that_comes_first_is_not_lost_and_serves_one_hold() -> None:
    gate = Gate()
    gate.release()
    gate.hold()
    second = held(gate)
    second.join(0.05)
    assert second.is_alive()
    gate.release()
    eventually(lambda: not second.is_alive(), 5)


def test_one_release_lets_one_of_two_holders_pass() -> None:
    gate = Gate()
    threads = [held(gate), held(gate)]
    gate.release()
    eventually(lambda: sum(thread.is_alive() for thread in threads) == 1, 5)
    gate.open()
    eventually(lambda: not any(thread.is_alive() for thread in threads), 5)


def test_an_open_gate_releases_every_holder_now_and_later() -> None:
    gate = Gate()
    threads = [held(gate) for _ in range(3)]
    assert not gate.is_open
    gate.open()
    eventually(lambda: not any(thread.is_alive() for thread in threads), 5)
    assert gate.is_open
    for _ in range(3):
        gate.hold()
