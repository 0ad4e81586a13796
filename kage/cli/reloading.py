"""The configuration of this kage, read again from where it came from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kage.agent.reloading import Fresh
from kage.cli.ground import Ground
from kage.cli.pinning import watched
from kage.cli.trusting import desk_of
from kage.config.load import Loaded, load
from kage.config.project import PROJECT_CONFIG, PROJECT_JSON
from kage.core.errors import ConfigFault, UsageError
from kage.permissions.rules.rules import Rules


class Files:
    """Every layer this kage was started with; the command line stays as it was given.

    Args:
        rules: Makes the rules of a configuration; raises UsageError.
        permit: Puts rules in force.
        faults: What is wrong with the rules of the start.
    """

    def __init__(
        self,
        here: Ground,
        *,
        rules: Callable[[Ground], Rules],
        permit: Callable[[Rules], None],
        faults: tuple[ConfigFault, ...] = (),
    ) -> None:
        self.told: tuple[ConfigFault, ...] = here.loaded.faults or faults  # as ``read`` gives them
        self._here = here
        self._rules = rules
        self._permit = permit
        self._begun = self._signs()

    def files(self) -> tuple[Path, ...]:
        """Give every file that is read, or would be if it were there."""
        return (
            *self._written(),
            desk_of(self._here).book.path,  # another shell may decide: kage mcp trust
            *watched(self._here),
        )

    def hold(self) -> None:
        """Hold what was written since this kage began, also beside mistakes in the same file."""
        if self._signs() != self._begun:
            desk_of(self._here).reload(self._load())

    def read(self) -> Fresh:
        """Read all of them, and review what changed of the servers."""
        loaded = self._load()
        if loaded.faults:
            return Fresh(settings=self._here.settings, faults=loaded.faults)
        fresh = dataclasses.replace(self._here, loaded=loaded)
        try:
            rules = self._rules(fresh)
        except UsageError as error:  # a server that --allow names is gone
            fault = ConfigFault(file=Path("--allow"), line=0, key="", what=str(error))
            return Fresh(settings=self._here.settings, faults=(fault,))
        if rules.faults:
            return Fresh(settings=self._here.settings, faults=rules.faults)
        counted, held = desk_of(self._here).reload(loaded)
        self._here.loaded = counted
        rules = self._rules(self._here)  # without what is held
        return Fresh(
            settings=self._here.settings,
            held=held,
            trusted=tuple(desk_of(self._here).freed),
            permit=partial(self._permit, rules),
        )

    def _load(self) -> Loaded:
        options = self._here.options
        return load(
            paths=self._here.paths,
            workspace=self._here.workspace,
            config_file=options.config_file,
            mcp_config=options.mcp_config,
            strict=options.strict_mcp_config,
        )

    def _written(self) -> tuple[Path, ...]:
        """Give the files that say what starts and what may run."""
        options = self._here.options
        given = (Path(text).expanduser() for text in options.mcp_config if not _inline(text))
        return (
            options.config_file or self._here.paths.config_file,
            *(self._here.workspace / name for name in (PROJECT_CONFIG, PROJECT_JSON)),
            *given,
        )

    def _signs(self) -> tuple[object, ...]:
        """Give by what one sees that a file was written; a program cannot set its time back."""
        return tuple(_sign(file) for file in self._written())


def _sign(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_ctime_ns


def _inline(text: str) -> bool:
    return text.lstrip().startswith("{")
