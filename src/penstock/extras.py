"""Packages that only some installations have."""

from __future__ import annotations

import importlib.util

from penstock.errors import PenstockError


def require(module: str, package: str, extra: str, who: str) -> None:
    """Refuses, with the command that installs it, what needs a package that is not there."""
    if importlib.util.find_spec(module) is None:
        raise PenstockError(
            f"{who} needs the package {package}, which is not installed: pip install 'penstock[{extra}]'"
        )
