"""Ends of pipelines that lead nowhere, and a DataFrame that writes down what is done to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FakeSource:
    native: bool = False


@dataclass(frozen=True)
class FakeSink:
    guarantee: str = "exactly once"


@dataclass(frozen=True)
class FakeFrame:
    history: str

    def unionByName(self, other: FakeFrame) -> FakeFrame:
        return FakeFrame(f"({self.history} + {other.history})")


def step(name: str):
    """An operator's function that adds its name."""
    return lambda rows: FakeFrame(f"{rows.history}.{name}")


def match(left: FakeFrame, right: FakeFrame) -> FakeFrame:
    return FakeFrame(f"({left.history} x {right.history})")


def same(rows):
    return rows
