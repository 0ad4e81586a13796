"""Run the conformance suite against kage, both ways, and judge what it says.

``python -m tests --conformance [--latest|--alpha] [--client|--server] [--scenario NAME]``
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance import expected
from tests.conformance.bridge import bridge
from tests.conformance.expected import Case
from tests.conformance.packages import Missing, Suite, installed

ROOT = Path(__file__).resolve().parents[2]
FROZEN = ("2025-11-25", "2026-07-28")  # the alpha has a set of what each requires
REVISIONS = ("2025-03-26", "2025-06-18", *FROZEN)  # of the older ones, what applies
_CLIENT = f"{sys.executable} -m tests.conformance.client"
_SERVE = (sys.executable, "-m", "kage", "mcp", "serve", "--config")
_FIXTURE = Path(__file__).with_name("serve.toml")
_LIMIT = 60.0  # seconds for one scenario
_NAME = re.compile(r"^\s*- (\S+)(?: \[(client|server)\])?")


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of one scenario."""

    case: Case
    passed: int = 0
    failed: list[str] = field(default_factory=list)  # ids of checks
    warned: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)  # expected to fail, and passed
    skipped: str = ""  # why
    log: str = ""

    @property
    def fine(self) -> bool:
        """Whether it is as expected."""
        return not self.unexpected and not self.stale


class Run:
    """One leg: a version of the suite, and for the alpha a revision it is held to."""

    def __init__(self, suite: Suite, revision: str, folder: Path, url: str) -> None:
        self.leg = f"{suite.name} {revision}".strip()
        self._suite = suite
        self._revision = revision
        self._folder = folder
        self._url = url
        self._expected = expected.load()

    async def cases(self) -> list[Case]:
        """Ask the suite which scenarios there are."""
        which = "--requirements" if self._revision in FROZEN else "--spec-version"
        _, text = await self._node("list", *((which, self._revision) if self._revision else ()))
        found: list[Case] = []
        side = ""
        for line in text.splitlines():
            if line.startswith(("Server scenarios", "Client scenarios", "Authorization")):
                side = line.partition(" ")[0].lower()
            elif match := _NAME.match(line):
                case = Case(leg=self.leg, side=match[2] or side, scenario=match[1])
                if case.side in ("client", "server"):
                    found.append(case)
        return found

    async def run(self, case: Case) -> Outcome:
        """Run one scenario and read the checks it wrote."""
        outcome = Outcome(case=case, skipped=self._expected.skipped(case))
        if outcome.skipped:
            return outcome
        with tempfile.TemporaryDirectory(dir=self._folder) as results:
            words = [case.side, "--scenario", case.scenario, "-o", results]
            if case.side == "client":
                words += ["--command", _CLIENT, "--timeout", str(int(_LIMIT * 1000))]
            else:
                words += ["--url", self._url]
            if self._revision:
                words += ["--spec-version", self._revision, "--force"]
            code, outcome.log = await self._node(*words)
            self._read(Path(results), outcome)
        if not outcome.passed and not outcome.failed:
            outcome.failed.append(f"no checks (exit code {code})")
        outcome.unexpected, outcome.stale = self._expected.judge(case, outcome.failed)
        return outcome

    def _read(self, results: Path, outcome: Outcome) -> None:
        for path in results.rglob("checks.json"):
            for check in json.loads(path.read_text("utf-8")):
                match check["status"]:
                    case "SUCCESS":
                        outcome.passed += 1
                    case "FAILURE":
                        outcome.failed.append(check["id"])
                        outcome.log += f"\n{check['id']}: {check.get('errorMessage', '')}"
                    case "WARNING":
                        outcome.warned.append(check["id"])
        for path in results.rglob("stderr.txt"):
            outcome.log += f"\n{path.read_text('utf-8', 'replace')}"

    async def _node(self, *words: str) -> tuple[int, str]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self._suite.argv,
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            start_new_session=True,  # to end the client it started too
        )
        output = b"it did not come to an end"
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2 * _LIMIT):
                    output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
        lines = output.decode(errors="replace").splitlines()
        return await process.wait(), "\n".join(line[:300] for line in lines)


async def run_all(arguments: argparse.Namespace) -> int:
    """Run what was asked for; give the exit code."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="kage-conformance-") as name:
        folder = Path(name)
        served = folder / "served"
        served.mkdir()
        (served / "hello.txt").write_text("Hello\n")
        suites = [installed(name) for name in arguments.versions]
        async with bridge((*_SERVE, str(_FIXTURE), "--root", str(served))) as url:
            for suite in suites:
                for revision in REVISIONS if suite.name == "alpha" else ("",):
                    run = Run(suite, revision, folder, url)
                    outcomes += await _leg(run, arguments)
    if not outcomes:
        print("The suite has no such scenario", file=sys.stderr)
        return 2
    return told(outcomes)


async def _leg(run: Run, arguments: argparse.Namespace) -> list[Outcome]:
    wanted = [
        case
        for case in await run.cases()
        if case.side in arguments.sides and arguments.scenario in ("", case.scenario)
    ]
    at_once = asyncio.Semaphore(os.cpu_count() or 2)  # more only makes timings worse

    async def one(case: Case) -> Outcome:
        async with at_once:
            outcome = await run.run(case)
        if not outcome.skipped:
            _print(outcome, verbose=bool(arguments.scenario))
        return outcome

    if wanted:
        print(f"-- {run.leg}", flush=True)
    outcomes = list(await asyncio.gather(*(one(case) for case in wanted)))
    for reason in dict.fromkeys(outcome.skipped for outcome in outcomes if outcome.skipped):
        names = [o.case.scenario for o in outcomes if o.skipped == reason]
        print(f"   not run, {reason}:\n      {', '.join(names)}", flush=True)
    return outcomes


def _print(outcome: Outcome, *, verbose: bool) -> None:
    case = outcome.case
    label = f"{case.side} {case.scenario}"
    words = f"{outcome.passed} passed, {len(outcome.failed)} failed"
    if outcome.warned:
        words += f", {len(outcome.warned)} warned ({', '.join(outcome.warned)})"
    print(f"   {'ok  ' if outcome.fine else 'FAIL'}   {label}: {words}", flush=True)
    for kind, checks in (("failed", outcome.unexpected), ("passes by now", outcome.stale)):
        for check in checks:
            print(f"            {kind}: {check}", flush=True)
    if outcome.unexpected or verbose:
        print("\n".join(f"            | {line}" for line in outcome.log.splitlines()[-60:]))


def told(outcomes: Sequence[Outcome]) -> int:
    """Print how many checks passed, by leg and side; give the exit code."""
    print("-- checks passed / failed / of the failed expected")
    for leg in dict.fromkeys(outcome.case.leg for outcome in outcomes):
        for side in ("client", "server"):
            of = [o for o in outcomes if (o.case.leg, o.case.side) == (leg, side)]
            run = [outcome for outcome in of if not outcome.skipped]
            if of:
                failed = sum(len(outcome.failed) for outcome in run)
                known = sum(check not in o.unexpected for o in run for check in o.failed)
                print(
                    f"   {leg} {side}: {sum(o.passed for o in run)} / {failed} / {known} "
                    f"in {len(run)} scenarios, {len(of) - len(run)} not run"
                )
    return 0 if all(outcome.fine for outcome in outcomes) else 1


def main(words: list[str]) -> int:
    """Run the suite; exit code 0 also where it cannot be had, which is said."""
    parser = argparse.ArgumentParser(prog="python -m tests --conformance")
    version = parser.add_mutually_exclusive_group()
    for name in ("latest", "alpha"):
        version.add_argument(f"--{name}", dest="versions", action="store_const", const=(name,))
    side = parser.add_mutually_exclusive_group()
    for name in ("client", "server"):
        side.add_argument(f"--{name}", dest="sides", action="store_const", const=(name,))
    parser.add_argument("--scenario", default="", metavar="NAME")
    parser.set_defaults(versions=("latest", "alpha"), sides=("client", "server"))
    try:
        return asyncio.run(run_all(parser.parse_args(words)))
    except Missing as missing:
        print(f"The conformance suite was skipped: {missing}", file=sys.stderr)
        return 0
