"""``kage doctor``: look at everything kage needs, and say what to do about what is missing."""

from __future__ import annotations

import asyncio
import importlib.metadata
import locale
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import click

from kage import __version__
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json, examples
from kage.core.errors import KageError
from kage.core.sanitise import visible

_SIGNS = {"ok": "✓", "warn": "!", "fail": "✗"}
MODEL_WAIT = 5.0  # seconds to find out which model would answer
_SMALL = (80, 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    area: str
    name: str
    state: Literal["ok", "warn", "fail"]
    text: str
    fix: str = ""


@click.command(
    name="doctor",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "kage doctor",
        "kage --no-mcp doctor          without starting the servers",
        "kage doctor --json | jq -r '.[] | select(.state==\"fail\").fix'",
    ),
)
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
@click.pass_obj
def group(options: Options, json_: bool) -> None:
    """Check terminal, configuration, keys, servers and folders, with fixes.

    Trusted, enabled servers are started for a moment. Exit code 1 when something is broken.
    """
    here = ground(options)
    refuse_agent(here.environ, "doctor")
    findings: list[Finding] = []
    area = ""
    for one in _everything(here):
        findings.append(one)
        if json_:
            continue
        if one.area != area:
            area = one.area
            print(area)
        line = f"{one.name}: {one.text}" if one.text else one.name
        print(f"  {_SIGNS[one.state]} {visible(line, single_line=True)}")
        if one.fix:
            print(f"      {visible(one.fix, single_line=True)}")
        sys.stdout.flush()
    if json_:
        as_json([asdict(one) for one in findings])
    bad = sum(one.state == "fail" for one in findings)
    odd = sum(one.state == "warn" for one in findings)
    if not json_:
        print(f"\n{bad} broken, {odd} to look at" if bad or odd else "\neverything is fine")
    raise click.exceptions.Exit(1 if bad else 0)


def _everything(here: Ground) -> Iterator[Finding]:
    yield from _program()
    yield from _terminal(here)
    yield from _folders(here)
    yield from _configuration(here)
    yield from _model(here)
    yield from _tools(here)
    yield from _servers(here)
    yield from _plugins(here)


def _program() -> Iterator[Finding]:
    system = f"{platform.system()} {platform.release()}"
    yield _ok("kage", __version__, f"Python {platform.python_version()}, {system}")
    for name in ("mcp", "textual"):
        try:
            yield _ok("kage", name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield _bad("kage", name, "is not installed", "Install kage again: pip install kage")


def _terminal(here: Ground) -> Iterator[Finding]:
    area = "terminal"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        text = "this is none, so the screen cannot be judged"
        yield _odd(area, "terminal", text, 'Without one kage works with -p: kage -p "…"')
        return
    columns, lines = shutil.get_terminal_size()
    if columns < _SMALL[0] or lines < _SMALL[1]:
        yield _odd(area, "size", f"{columns} × {lines}", "Make it 80 × 24 or larger")
    else:
        yield _ok(area, "size", f"{columns} × {lines}")
    kind = here.environ.get("TERM", "")
    if kind in {"", "dumb"}:
        yield _bad(area, "TERM", kind or "is not set", "Use a terminal that can draw")
        return
    many = here.environ.get("COLORTERM", "") in {"truecolor", "24bit"}
    colours = "16 million" if many else "256" if "256" in kind else "few"
    if here.environ.get("NO_COLOR"):
        colours = "off: NO_COLOR is set"
    yield _ok(area, "colours", f"{colours} ({kind})")
    encoding = locale.getpreferredencoding(False)
    if encoding.lower().replace("-", "") == "utf8":
        yield _ok(area, "characters", encoding)
    else:
        yield _odd(area, "characters", encoding, "Set LC_ALL=C.UTF-8 for lines and signs")


def _folders(here: Ground) -> Iterator[Finding]:
    paths = here.paths
    places = {"data": paths.data, "cache": paths.cache, "runtime": paths.runtime}
    for name, place in {"config": paths.config, **places}.items():
        nearest = place
        while not nearest.exists() and nearest != nearest.parent:
            nearest = nearest.parent
        if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
            yield _ok("folders", name, str(place))
        else:
            fix = f"Let your user write to {nearest}"
            yield _bad("folders", name, f"{place} cannot be written to", fix)
    from kage.permissions.decisions.log import verify

    try:
        problems = verify(paths.data / "decisions")
    except OSError as error:
        text = f"{error.filename} cannot be read: {error.strerror}"
        yield _bad("folders", "decision log", text, "Put it right, or move it away")
        return
    if problems:
        text = f"{len(problems)} problems, the first: {problems[0]}"
        yield _bad("folders", "decision log", text, "Something else wrote to it; keep a copy")
    else:
        yield _ok("folders", "decision log", "whole")


def _configuration(here: Ground) -> Iterator[Finding]:
    from kage.cli.wiring import rules_of

    area = "configuration"
    faults = (*here.loaded.faults, *rules_of(here).faults)
    for fault in faults:
        yield _bad(area, "mistake", str(fault), "Mend it; `kage config check` shows all of them")
    for advice in here.loaded.advice:
        yield _odd(area, "advice", advice, "")
    for file in here.loaded.files:
        if not any(fault.file == file for fault in faults):
            yield _ok(area, str(file), "sound")
    if not here.loaded.files:
        yield _ok(area, "config.toml", "none yet; `kage init` writes one")


def _model(here: Ground) -> Iterator[Finding]:
    from kage.config.providers import key_variables
    from kage.providers.catalog import Models
    from kage.providers.offline import ID as OFFLINE

    area = "model"
    names = sorted(key_variables(here.settings.providers))
    present = [name for name in names if here.environ.get(name)]
    yield _ok(area, "keys", f"{', '.join(present)} set" if present else "none is set")
    for name, spec in here.settings.providers.items():
        if spec.api_key_env and not here.environ.get(spec.api_key_env):
            fix = f"export {spec.api_key_env}=…"
            yield _odd(area, f"providers.{name}", f"{spec.api_key_env} is not set", fix)
    models = Models(here.settings, here.environ)
    try:
        chosen, reason = asyncio.run(asyncio.wait_for(models.choose(), MODEL_WAIT))
        if here.options.model:
            chosen, reason = here.options.model, "--model"
        models.create(chosen)
    except TimeoutError:
        yield _odd(area, "choice", "no endpoint answered in time", "Look at your network")
    except KageError as error:
        yield _bad(area, "choice", error.what, error.fix)
    else:
        if chosen == OFFLINE:
            fix = "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a local model server"
            yield _odd(area, "choice", f"offline: {reason}", fix)
        else:
            yield _ok(area, "choice", f"{chosen}: {reason}")


def _tools(here: Ground) -> Iterator[Finding]:
    from kage.tools.programs import which

    found = which("rg", here.environ)
    if found:
        yield _ok("tools", "ripgrep", found)
    else:
        fix = "Install ripgrep: searching large trees is many times faster with it"
        yield _odd("tools", "ripgrep", "not found; kage searches by itself", fix)
    shell = which("bash", here.environ) or which("sh", here.environ)
    if shell:
        yield _ok("tools", "shell", shell)
    else:
        yield _bad("tools", "shell", "neither bash nor sh is found", "Look at PATH")
    yield _sandbox(here)


def _sandbox(here: Ground) -> Finding:
    from kage.sandbox.mechanism import look

    found = look(here.environ.get("PATH", os.defpath))
    wanted = (
        [f"bash ({here.settings.sandbox.bash})"] if here.settings.sandbox.bash != "none" else []
    )
    servers = here.settings.servers.values()
    wanted += [f"{spec.name} ({spec.sandbox})" for spec in servers if spec.sandbox != "none"]
    used = f"for {', '.join(wanted)}" if wanted else "nothing asks for it"
    if found.kind:
        version = f" version {found.version}" if found.version else ""
        text = f"{found.kind}{version}: {found.covers}; {used}"
        return _ok("tools", "sandbox", text)
    if wanted:
        return _bad("tools", "sandbox", f"none, since {found.why}; {used}", found.fix)
    return _ok("tools", "sandbox", f"none, since {found.why}; {used}")


def _servers(here: Ground) -> Iterator[Finding]:
    from kage.cli.servers import entries, entry, startable

    area = "servers"
    every = entries(here)
    if not every:
        yield _ok(area, "none", "`kage mcp add` or `kage mcp import` brings some")
        return
    if not here.settings.mcp_enabled:
        yield _ok(area, "off", f"{len(every)} configured, none is started")
        return
    names = startable(here)
    reports = {report["name"]: report for report in asyncio.run(_reports(here, names))}
    for spec in every:
        report = reports.get(spec.name)
        if report is None or spec.name not in names or report["state"] == "untrusted":
            yield _idle(spec.name, str((report or entry(spec, here))["state"]))
            continue
        fault = report["fault"]
        if report["state"] == "connected":
            yield _ok(area, spec.name, f"{report['tools']} tools, {report['protocol']}")
            for reason in report["dropped"]:
                yield _odd(area, spec.name, f"left out {reason}", "")
        else:
            text = f"{fault['stage']}: {fault['what']}" if fault else str(report["state"])
            again = f"See it alone: kage mcp test {spec.name}"
            yield _bad(area, spec.name, text, (fault or {}).get("fix") or again)


def _idle(name: str, state: str) -> Finding:
    if state == "disabled":
        return _ok("servers", name, "disabled")
    return _odd("servers", name, f"{state}, not started", f"To decide: kage mcp trust {name}")


async def _reports(here: Ground, names: list[str]) -> list[dict[str, Any]]:
    """Start all side by side; each has its own limit for connecting."""
    from kage.cli.servers import connected

    async with connected(here, names) as up:
        return up.statuses()


def _plugins(here: Ground) -> Iterator[Finding]:
    folder = here.paths.config / "plugins"
    names = _listed(folder)
    if names:
        yield _ok("plugins", str(folder), ", ".join(names))
    else:
        yield _ok("plugins", "none", f"they would be in {folder}")


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir() if not one.name.startswith("."))
    except OSError:
        return []


def _ok(area: str, name: str, text: str) -> Finding:
    return Finding(area=area, name=name, state="ok", text=text)


def _odd(area: str, name: str, text: str, fix: str) -> Finding:
    return Finding(area=area, name=name, state="warn", text=text, fix=fix)


def _bad(area: str, name: str, text: str, fix: str) -> Finding:
    return Finding(area=area, name=name, state="fail", text=text, fix=fix)
