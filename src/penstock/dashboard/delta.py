"""Only what changed: the difference of two states, and a state with a difference applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

State = Mapping[str, Mapping[str, Any]]
"""Items by section and name; an item is a value or a mapping of fields."""


def difference(before: State, after: State) -> dict[str, Any]:
    """The fields that are new or other, by section and item; what has gone is null. Empty: nothing changed.

    >>> difference({"s": {"a": {"n": 1, "m": 2}, "b": 3}}, {"s": {"a": {"n": 5, "m": 2}}})
    {'s': {'a': {'n': 5}, 'b': None}}
    """
    found: dict[str, Any] = {}
    for section, items in after.items():
        known = before.get(section, {})
        changed = {name: _changed(known.get(name), item) for name, item in items.items()}
        fresh = {name: change for name, change in changed.items() if change is not UNCHANGED}
        fresh |= {name: None for name in known if name not in items}
        if fresh:
            found[section] = fresh
    return found


UNCHANGED = object()


def _changed(before: Any, after: Any) -> Any:
    if before == after:
        return UNCHANGED
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return after
    return {name: value for name, value in after.items() if name not in before or before[name] != value}


def applied(before: State, change: Mapping[str, Any]) -> dict[str, Any]:
    """The state that a difference leads to, as every viewer computes it.

    >>> applied({"s": {"a": {"n": 1, "m": 2}, "b": 3}}, {"s": {"a": {"n": 5}, "b": None}})
    {'s': {'a': {'n': 5, 'm': 2}}}
    """
    state = {section: dict(items) for section, items in before.items()}
    for section, items in change.items():
        known = state.setdefault(section, {})
        for name, item in items.items():
            if item is None:
                known.pop(name, None)
            elif isinstance(item, Mapping) and isinstance(known.get(name), Mapping):
                known[name] = {**known[name], **item}
            else:
                known[name] = item
    return state
