"""Everything a change must pass: format, lint, types, import contracts, tests.

``python -m tests`` runs all of it; words after it go to pytest (``python -m tests -k gate``), and
``--node`` runs the set that needs node and a package registry instead. ``--conformance`` runs the
official conformance suite, which needs both too; docs/conformance.md tells its own words.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = (sys.executable, "-m")
IMPORTS = str(Path(sysconfig.get_path("scripts")) / "lint-imports")

CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", (*PYTHON, "ruff", "format", "--check", "--quiet", ".")),
    ("lint", (*PYTHON, "ruff", "check", "--quiet", ".")),
    ("types", (*PYTHON, "mypy")),
    ("import contracts", (IMPORTS, "--no-cache")),
)


def main(arguments: list[str]) -> int:
    """Run the checks, then the tests; give the exit code of the first that fails."""
    if "--conformance" in arguments:
        from tests.conformance import suite

        return suite.main([word for word in arguments if word != "--conformance"])
    node = "--node" in arguments
    words = [word for word in arguments if word != "--node"]
    if not words and not node:
        for name, command in CHECKS:
            print(f"-- {name}", flush=True)
            code = subprocess.run(command, cwd=ROOT, check=False).returncode
            if code:
                print(f"{name} failed", file=sys.stderr)
                return code
    print("-- tests", flush=True)
    marks = ("-m", "node") if node else ("-m", "not node")
    workers = 3 * (os.cpu_count() or 2)  # the tests wait more than they compute
    parallel = () if words or node else ("-n", str(workers), "--dist", "worksteal")
    command = (*PYTHON, "pytest", *marks, *parallel, *words)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
