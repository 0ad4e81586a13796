"""What the documents point at is there, and what they show works."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KAGE = ROOT / "kage"


def _named() -> list[tuple[str, str]]:
    """Give (room, file) of each row of the table that says where to change what."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = text.partition("## Where do I change")[2].partition("\n## ")[0]
    found: list[tuple[str, str]] = []
    for line in (line for line in table.splitlines() if line.startswith("|")):
        room = ""
        for name in re.findall(r"`([\w/.]+\.(?:py|md)|[\w/]+/)`", line.rpartition(" | ")[2]):
            room = name.rpartition("/")[0] or room
            found.append((room, name))
    return found


def test_every_file_the_architecture_sends_one_to_exists() -> None:
    named = _named()
    assert len(named) > 40
    for room, name in named:
        assert (KAGE / name).exists() or (KAGE / room / name).exists(), name


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CHANGELOG.md",
        "docs/architecture.md",
        "docs/conformance.md",
        "docs/log.md",
        "docs/servers.md",
    ],
)
def test_every_link_inside_the_repository_leads_somewhere(name: str) -> None:
    file = ROOT / name
    for target in re.findall(r"\]\(([^)#]+)\)", file.read_text("utf-8")):
        assert "://" in target or (file.parent / target).exists(), target


def test_every_settings_snippet_of_the_readme_is_sound(tmp_path: Path) -> None:
    from kage.config.load import load
    from kage.config.paths import Paths

    text = (ROOT / "README.md").read_text("utf-8")
    snippets = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(snippets) > 2
    for snippet in snippets:
        tomllib.loads(snippet)
        file = tmp_path / "config.toml"
        file.write_text(snippet, "utf-8")
        paths = Paths.from_environ({"HOME": str(tmp_path)})
        loaded = load(paths=paths, workspace=tmp_path, config_file=file)
        assert loaded.faults == ()
