"""A safeguard that is taken away turns the suite red (SPEC O2)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.proof.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
PROOFS = "tests/proof/test_gate_holds.py"


def _suite(mutant: str, *chosen: str) -> subprocess.CompletedProcess[str]:
    """Run the proofs, or the one that is chosen."""
    proofs = [f"{PROOFS}::{name}" for name in chosen] or [PROOFS]
    words = ["-p", "tests.proof.mutants", "--mutant", mutant, "-p", "no:xdist", "-q", *proofs]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--tb=line", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.mark.parametrize(
    ("mutant", "failed"),
    [
        ("gate_allows", "test_no_call_of_a_server_leaves_without_an_answer"),
        ("gate_skipped", "test_no_command_no_write_and_no_fetch_happens_without_an_answer"),
        ("seal_open", "test_a_tool_that_is_run_past_the_gate_sends_nothing"),
        ("seal_reused", "test_an_answer_about_some_arguments_lets_no_others_through"),
        ("tap_unsealed", "test_a_tool_that_is_run_past_the_gate_sends_nothing"),
        ("log_silent", "test_every_call_that_ran_has_a_record_before_and_after"),
        ("log_halved", "test_every_call_that_ran_has_a_record_before_and_after"),
    ],
)
def test_the_suite_is_red_without_it(mutant: str, failed: str) -> None:
    ended = _suite(mutant, failed)
    assert ended.returncode == 1, ended.stdout + ended.stderr  # tests failed, nothing else
    assert f"::{failed}" in ended.stdout, ended.stdout


def test_the_suite_is_green_with_all_of_them() -> None:
    ended = _suite("none")
    assert ended.returncode == 0, ended.stdout


def test_every_mutant_is_tried() -> None:
    marks = test_the_suite_is_red_without_it.pytestmark  # type: ignore[attr-defined]
    tried = {case[0] for mark in marks for case in mark.args[1]}
    assert tried == set(MUTANTS)
