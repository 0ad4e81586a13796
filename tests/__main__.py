"""Everything a change must pass: format, lint, types, import contracts, tests.

``python -m tests`` runs all of it; words after it go to pytest (``python -m tests -k gate``), and
``--node`` runs the set that needs node and a package registry instead. ``--conformance`` runs the
official conformance suite, which needs both too; docs/conformance.md tells its own words.

While the checks run, every module is compiled, for pytest as well: else each worker would rewrite
the assertions of every test, and each kage a test starts would compile itself. Where Python is told
to write no bytecode it goes to a folder of this run, so the tree stays as it is.

The tests run side by side, more than there are processors. Of what fails then, a few are run once
more, one at a time: what fails again fails the run, what holds is named at the end as unsteady.
That is a fault too, of the test or of kage, but not one of the change at hand.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYTHON = (sys.executable, "-m")
IMPORTS = str(Path(sysconfig.get_path("scripts")) / "lint-imports")

CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", (*PYTHON, "ruff", "format", "--check", "--quiet", ".")),
    ("lint", (*PYTHON, "ruff", "check", "--quiet", ".")),
    ("types", (*PYTHON, "mypy")),
    ("import contracts", (IMPORTS, "--no-cache")),
)

SECOND_CHANCES = 8  # more failures than that are no accident


def main(arguments: list[str]) -> int:
    """Run the checks, then the tests; give the exit code of the first that fails."""
    if "--conformance" in arguments:
        from tests.conformance import suite

        return suite.main([word for word in arguments if word != "--conformance"])
    node = "--node" in arguments
    words = [word for word in arguments if word != "--node"]
    marks = ("-m", "node" if node else "not node")
    if words or node:
        return _pytest(*marks, *words)
    with tempfile.TemporaryDirectory(prefix="kage-tests-") as folder:
        if sys.dont_write_bytecode:
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
            os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder, "compiled"))
        with _compiling(marks):
            code = _checks()
        return code or _side_by_side(Path(folder), marks)


def _checks() -> int:
    for name, command in CHECKS:
        print(f"-- {name}", flush=True)
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code:
            print(f"{name} failed", file=sys.stderr)
            return code
    return 0


@contextlib.contextmanager
def _compiling(marks: tuple[str, ...]) -> Iterator[None]:
    """Compile all modules meanwhile; what fails in it fails again, with words, in the run."""
    with contextlib.ExitStack() as stack:
        for words in (("compileall", "-q", "kage"), ("pytest", "--collect-only", *marks)):
            quiet = subprocess.DEVNULL
            process = subprocess.Popen((*PYTHON, *words), cwd=ROOT, stdout=quiet, stderr=quiet)
            stack.enter_context(process)
        yield


def _side_by_side(folder: Path, marks: tuple[str, ...]) -> int:
    """Run all tests in parallel, then the few that failed once more, alone."""
    workers = 3 * (os.cpu_count() or 2)  # the tests wait more than they compute
    kept = folder / "failed"
    code = _pytest(*marks, "-n", str(workers), "--dist", "worksteal", f"--failures={kept}")
    failed = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failed) <= SECOND_CHANCES:
        return code
    print(f"-- {len(failed)} once more, alone", flush=True)
    code = _pytest(*marks, *failed)
    if not code:
        print("unsteady, to be mended:", *failed, sep="\n  ")
    return code


def _pytest(*words: str) -> int:
    print("-- tests", flush=True)
    return subprocess.run((*PYTHON, "pytest", *words), cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
