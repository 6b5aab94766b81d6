"""An engine that is watched, with a clock of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.dashboard.fakes import FakeEngine


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    return FakeEngine(tmp_path)
