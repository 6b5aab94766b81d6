"""Differentially private counts, sums and means by group and window, paid from the subjects' budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from penstock.operators.privacy.budget import Budget
from penstock.operators.privacy.laplace import opendp
from penstock.operators.privacy.private_release import PrivateRelease
from penstock.operators.privacy.questions import ONE_GROUP, Question
from penstock.pipeline.latency import Duration, parse_not_negative, parse_positive


def private_counts(
    budget: Budget,
    *,
    product: str,
    epsilon: float,
    on: str,
    size: Duration,
    by: str | None = None,
    groups: Sequence[str] = (),
    subject: str = "subject",
    rows: int = 1,
    groups_each: int = 1,
    late: Duration = "0s",
    refuse: bool = True,
) -> PrivateRelease:
    """Rows by window and group, as whole numbers with noise (which may make them negative).

    A subject counts with up to `rows` rows in each of up to `groups_each` groups: with 1 and 1 the counts are
    of subjects. `groups` are the values of `by` that are released, each in every window; rows of others do
    not count. Each release costs its subjects `epsilon` of their budget for the product; who cannot pay is
    left out. If nobody can, the values are null and say so, or with refuse=False noise alone.
    """
    limits = _Limits(rows, groups_each, refuse)
    question = _question("count", product, epsilon, by, groups, size, limits)
    return _private(question, budget, on, subject, late)


def private_sums(
    budget: Budget,
    column: str,
    *,
    bounds: tuple[float, float],
    product: str,
    epsilon: float,
    on: str,
    size: Duration,
    by: str | None = None,
    groups: Sequence[str] = (),
    subject: str = "subject",
    rows: int = 1,
    groups_each: int = 1,
    late: Duration = "0s",
    refuse: bool = True,
) -> PrivateRelease:
    """Sums of a column, as private_counts; values are cut to `bounds`, and null and NaN do not count.

    A subject with more than `rows` rows in a group counts as that many of their mean.
    """
    limits = _Limits(rows, groups_each, refuse, column, bounds)
    question = _question("sum", product, epsilon, by, groups, size, limits)
    return _private(question, budget, on, subject, late)


def private_means(
    budget: Budget,
    column: str,
    *,
    bounds: tuple[float, float],
    product: str,
    epsilon: float,
    on: str,
    size: Duration,
    by: str | None = None,
    groups: Sequence[str] = (),
    subject: str = "subject",
    rows: int = 1,
    groups_each: int = 1,
    late: Duration = "0s",
    refuse: bool = True,
) -> PrivateRelease:
    """Means of a column within `bounds`, as private_sums; half of `epsilon` goes to the count.

    In a group with few subjects it is mostly noise.
    """
    limits = _Limits(rows, groups_each, refuse, column, bounds)
    question = _question("mean", product, epsilon, by, groups, size, limits)
    return _private(question, budget, on, subject, late)


@dataclass(frozen=True)
class _Limits:
    """How far one subject may move a release, and what becomes of one that nobody can pay."""

    rows: int
    groups_each: int
    refuse: bool
    column: str | None = None
    bounds: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        # 1 and 1.0 are one bound, and must not be two releases.
        object.__setattr__(self, "bounds", tuple(map(float, self.bounds)))


def _question(
    kind: Literal["count", "sum", "mean"],
    product: str,
    epsilon: float,
    by: str | None,
    groups: Sequence[str],
    size: Duration,
    limits: _Limits,
) -> Question:
    seconds = parse_positive(size, "window size", "no row could fall into it")
    named = (
        ONE_GROUP if by is None and not groups else (groups,) if isinstance(groups, str) else tuple(groups)
    )
    return Question(kind, product, epsilon, by, named, seconds, **asdict(limits))


def _private(question: Question, budget: Budget, on: str, subject: str, late: Duration) -> PrivateRelease:
    opendp()  # What is missing is told before the first turn.
    seconds = parse_not_negative(late, "lateness", "a window cannot close before its end")
    return PrivateRelease(question, budget, on, subject, seconds)
