"""Small turns of stages that are held back."""

from __future__ import annotations

from penstock.scheduling.laxity import PROBE_SECONDS
from penstock.scheduling.probes import Probes


def test_a_stage_that_is_gone_or_ran_waits_for_its_next_small_turn_as_one_never_held_back() -> None:
    probes = Probes()
    assert probes.due("s", 10.0) == 10.0 + PROBE_SECONDS
    probes.probed("s")
    assert probes.due("s", 20.0) == 20.0 + 2 * PROBE_SECONDS
    probes.forget("s")
    assert probes.due("s", 30.0) == 30.0 + PROBE_SECONDS
