"""A stub to sign in at, and a kage of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.client.oauth.house import Kage
from tests.stubs.oauth import OAuthStub


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def stub() -> Iterator[OAuthStub]:
    with OAuthStub() as running:
        yield running


@pytest.fixture
def kage(stub: OAuthStub, tmp_path: Path) -> Kage:
    return Kage(tmp_path / "oauth", stub)
