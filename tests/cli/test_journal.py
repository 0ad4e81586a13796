"""What a server wrote can be read after the kage that started it is gone."""

from __future__ import annotations

from tests.cli.conftest import Kage
from tests.proof.house import House, server


def test_the_last_lines_of_a_server_are_printed(house: House, kage: Kage) -> None:
    house.write(server("srv", "noisy", "--lines", 30, stderr='"log"'), server("quiet", "echo"))
    nothing = kage("mcp", "log", "srv")
    assert (nothing.code, nothing.out) == (1, "")
    assert "kage mcp test srv" in nothing.err
    assert kage("mcp", "test", "srv").code == 0
    shown = kage("mcp", "log", "srv", "-n", "5")
    assert (shown.code, len(shown.out.splitlines())) == (0, 5)
    found = kage("mcp", "log", "srv", "--json").json
    assert found["lines"][-5:] == shown.out.splitlines()
    assert len(found["lines"]) >= 30
    assert kage("mcp", "log", "quiet").code == 1
    assert kage("mcp", "log", "sr").code == 2
