"""Write settings files into a temporary home and load them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kage.config.load import Loaded, load
from kage.config.paths import Paths


class Files:
    """A home with a config.toml, and a project."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.project = base / "project"
        self.project.mkdir()
        self.paths = Paths.from_environ({**os.environ, "XDG_CONFIG_HOME": str(base / "config")})
        self.config = self.paths.config_file
        self.config.parent.mkdir(parents=True)

    def load(self, text: str | None = None, **rest: Any) -> Loaded:
        if text is not None:
            self.config.write_text(text)
        return load(paths=self.paths, workspace=self.project, **rest)

    def project_toml(self, text: str) -> Path:
        path = self.project / ".kage" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def project_json(self, text: str) -> Path:
        path = self.project / ".mcp.json"
        path.write_text(text)
        return path

    def faults(self, loaded: Loaded) -> list[str]:
        """Give the faults as text, with the folders cut off."""
        return [str(fault).replace(f"{self.base}/", "") for fault in loaded.faults]
