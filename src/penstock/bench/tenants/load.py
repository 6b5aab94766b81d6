"""What one run is given: the tenants' jobs, and how they are scheduled. Travels to the worker as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.workloads.tenants.groups import Job

if TYPE_CHECKING:
    from penstock.scheduling.policies import Policy

NOOP = "noop"
"""The query that does nothing: rows in, the same rows out."""
NOOP_MESSAGE_SECONDS = 3.0
CLASSES = {"llf": "Llf", "edf": "Edf", "sjf": "Sjf", "token-share": "TokenShare"}


@dataclass(frozen=True)
class PolicyChoice:
    """A policy by its name, with settings other than its usual ones."""

    name: str = "llf"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Policy | str:
        """What an engine takes."""
        if not self.settings:
            return self.name
        made: Policy = getattr(import_module("penstock.scheduling.policies"), CLASSES[self.name])(
            **self.settings
        )
        return made

    def __str__(self) -> str:
        told = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}({told})" if told else self.name


@dataclass(frozen=True)
class FairSettings:
    """How plain Spark's FAIR pools are set: the weight of the urgent ones, and how much input a batch of a
    bulky query takes at most, in seconds of it."""

    weight: int = 10
    cap_seconds: float | None = None

    def __str__(self) -> str:
        cap = "no cap" if self.cap_seconds is None else f"bulk batches of {self.cap_seconds:g} s of input"
        return f"weight {self.weight}, {cap}"


@dataclass(frozen=True)
class Load:
    """The jobs of a run; plain Spark has no use for the policy, and others have none for FAIR's settings."""

    jobs: tuple[Job, ...]
    policy: PolicyChoice = PolicyChoice()
    fair: FairSettings = FairSettings()

    def to_json(self) -> dict[str, Any]:
        return {
            "jobs": [asdict(job) for job in self.jobs],
            "policy": {"name": self.policy.name, "settings": dict(self.policy.settings)},
            "fair": asdict(self.fair),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Load:
        return cls(
            tuple(Job(**job) for job in stored["jobs"]),
            PolicyChoice(**stored["policy"]),
            FairSettings(**stored["fair"]),
        )

    def under(self, name: str, **settings: Any) -> Load:
        """The same jobs under another policy."""
        return replace(self, policy=PolicyChoice(name, settings))

    @property
    def bulk_rows_per_second(self) -> float:
        return sum(job.rows_per_second for job in self.jobs if job.group == "bulk")


def noop_load(count: int) -> Load:
    """Many tenants whose query does nothing, one row every 3 s each, evenly spread."""
    return Load(
        tuple(
            Job(
                name=f"noop-{number}",
                group="urgent",
                query=NOOP,
                window_seconds=1.0,
                target_seconds=0.8,
                sources=1,
                rows_per_second=1 / NOOP_MESSAGE_SECONDS,
                message_seconds=NOOP_MESSAGE_SECONDS,
                starts_at=NOOP_MESSAGE_SECONDS * number / count,
                seed=number,
            )
            for number in range(count)
        )
    )
