"""A bench per test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.helpers import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Give a fresh workspace with all tools."""
    return Bench(tmp_path)
