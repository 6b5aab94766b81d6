"""Only what changed is sent, and leads every viewer to the same state."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.dashboard.delta import applied, difference

fields = st.dictionaries(st.sampled_from("xyz"), st.one_of(st.none(), st.integers(0, 3)), min_size=3)
items = st.dictionaries(st.sampled_from("abc"), fields)
states = st.fixed_dictionaries({"stages": items, "sinks": items})


@given(states, states)
def test_a_difference_applied_gives_the_later_state(before: dict, after: dict) -> None:
    assert applied(before, difference(before, after)) == after


@given(states)
def test_a_state_differs_from_nothing_by_all_of_it_and_from_itself_by_nothing(state: dict) -> None:
    assert applied({}, difference({}, state)) == {section: items for section, items in state.items() if items}
    assert difference(state, state) == {}


def test_a_field_that_stayed_is_not_sent() -> None:
    before = {"stages": {"a": {"turns": 1, "kind": "direct"}, "gone": {"turns": 2}}}
    after = {"stages": {"a": {"turns": 2, "kind": "direct"}}}
    assert difference(before, after) == {"stages": {"a": {"turns": 2}, "gone": None}}
