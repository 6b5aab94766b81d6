"""Patterns of words: which sets of words often occur together, kept up to date as texts come and go."""

from penstock.operators.text.patterns import (
    CANDIDATES,
    candidate_patterns,
    detect_patterns,
    report_patterns,
)

__all__ = ["CANDIDATES", "candidate_patterns", "detect_patterns", "report_patterns"]
