"""Run ripgrep: where it is, how it is started, what it says when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kage.core.errors import ToolError
from kage.core.processes import Spawner
from kage.core.sanitise import clip, visible
from kage.tools import programs
from kage.tools.confine import Place

DEADLINE = 30.0  # seconds for one search
MAX_OUTPUT = 8 << 20  # bytes taken from one search; then it is ended
_CHUNK = 1 << 18
_MEMORY = 512 << 20  # bytes of address space; a search of normal files takes about 30 MB
_SMALL_ONLY = "--max-filesize=32M"
_MATCHED, _NOTHING, _TROUBLE = 0, 1, 2  # exit codes; a signal is a failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a search printed; ``cut`` says that it was ended before it was done.

    ``small_only`` says that large files were left out, since they took too much memory.
    """

    data: bytes
    cut: bool
    small_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ripgrep:
    """The program and how to start it."""

    program: str
    spawner: Spawner

    async def run(self, arguments: Sequence[str], *, root: Path, most: int = MAX_OUTPUT) -> Output:
        """Run it in ``root`` and give what it printed, at most ``most`` bytes.

        It holds a whole line in memory, so a huge file of one line could take all there is. Its
        memory is limited; when that is not enough it runs again without large files. (Leaving
        them out from the start would cost a look at each file.)

        Raises:
            ToolError: it refused the pattern, took too long or could not be started.
        """
        careful = () if hasattr(resource, "prlimit") else (_SMALL_ONLY,)
        try:
            async with asyncio.timeout(DEADLINE):
                code, output, said = await self._once((*careful, *arguments), root, most)
                if code == -signal.SIGABRT:
                    code, output, said = await self._once((_SMALL_ONLY, *arguments), root, most)
                    output = Output(data=output.data, cut=output.cut, small_only=True)
        except TimeoutError:
            raise ToolError(
                f"The search took longer than {DEADLINE:.0f} seconds and was ended",
                fix="Search a smaller folder or for something rarer",
            ) from None
        # trouble it does not speak of is with single files (--no-messages): they cost themselves
        fine = code in (_MATCHED, _NOTHING) or (code == _TROUBLE and not said.strip())
        if not fine and not output.data:
            raise _failed(said)
        return output

    async def _once(
        self, arguments: Sequence[str], root: Path, most: int
    ) -> tuple[int, Output, bytes]:
        """Run it once; exit code, output, and the beginning of what it complained of."""
        process = await self._start(arguments, root)
        complaint = asyncio.ensure_future(_head(process.stderr))
        try:
            data, cut = await _collect(process.stdout, most)
            code = 0 if cut else await programs.exited(process)
            said = b"" if cut else await complaint
        finally:
            complaint.cancel()
            ending = self.spawner.end(process, grace=0.0)
            await programs.settle(asyncio.ensure_future(ending))
        return code, Output(data=data, cut=cut), said

    async def _start(self, arguments: Sequence[str], root: Path) -> asyncio.subprocess.Process:
        try:
            process = await self.spawner.spawn(
                (self.program, "--no-config", "--no-messages", "--color=never", *arguments),
                cwd=root,
                env={"LANG": "C.UTF-8"},
                stderr=asyncio.subprocess.PIPE,
                limit=_CHUNK,
            )
        except OSError as error:
            raise ToolError(
                "The search could not be started", why=error.strerror or str(error)
            ) from error
        if process.stdin is not None:
            process.stdin.close()
        if hasattr(resource, "prlimit"):
            with contextlib.suppress(OSError, ValueError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        return process


def find(environ: Mapping[str, str], spawner: Spawner) -> Ripgrep | None:
    """Find ripgrep on PATH or among the scripts of this Python."""
    program = programs.which("rg", environ)
    return None if program is None else Ripgrep(program=program, spawner=spawner)


def scope(place: Place, root: Path, *, hidden: bool, ignored: bool) -> list[str]:
    """Give the options that say which files count, the same as ``walk`` does.

    Ignore files count also outside of a repository, but then only those inside ``root``: a
    ``*`` in the home folder's ignore file would hide everything.
    """
    options = ["--no-ignore-global", "--no-require-git", "--glob=!.git"]
    if hidden:
        options.append("--hidden")
    if ignored:
        options.append("--no-ignore")
    elif not _in_repository(place.path):
        options.append("--no-ignore-parent")
        if place.path != root:
            options += [f"--ignore-file={name}" for name in (".gitignore", ".ignore")]
    return options


def target(place: Place, root: Path) -> str:
    """Give the path to search as seen from ``root``; it can never be taken for an option."""
    relative = place.path.relative_to(root)
    return f"./{relative}" if relative.parts else "./"


def _in_repository(path: Path) -> bool:
    return any((folder / ".git").exists() for folder in (path, *path.parents))


async def _collect(stream: asyncio.StreamReader | None, most: int) -> tuple[bytes, bool]:
    data = bytearray()
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        data += chunk
        if len(data) >= most:
            return bytes(data), True
    return bytes(data), False


async def _head(stream: asyncio.StreamReader | None) -> bytes:
    """Read a stream to its end and keep its beginning, so that it never fills up."""
    kept = b""
    while stream is not None and (chunk := await stream.read(4096)):
        kept = (kept + chunk)[:4096]
    return kept


def _failed(said: bytes) -> ToolError:
    text = visible(said.decode("utf-8", "replace")).removeprefix("rg: ").strip()
    if "regex" in text or "pattern" in text or "literal" in text:
        return ToolError(
            "The pattern cannot be used", why=clip(text, 1000), fix="Set literal for plain text"
        )
    return ToolError("The search failed", why=clip(text, 1000) or "ripgrep gave no reason")
