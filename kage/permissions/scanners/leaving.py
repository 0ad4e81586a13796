"""Shapes of secrets on their way out: keys, tokens and passwords as vendors write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kage.permissions.scanners.flag import Code, Flag, Kind, flag

_EDGE = r"(?<![A-Za-z0-9_])"
_SHAPES = (  # words, what has to be in the text, the pattern
    ("an AWS access key", ("AKIA", "ASIA"), rf"{_EDGE}A[KS]IA[0-9A-Z]{{16}}(?![0-9A-Za-z])"),
    ("an AWS secret key", ("ecret",),
     r"(?i:aws.{0,20}secret.{0,20})[\s\"':=]{1,5}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])"),
    ("a GitHub token", ("gh", "github_pat_"),
     rf"{_EDGE}(?:gh[pousr]_[A-Za-z0-9]{{36,}}|github_pat_[A-Za-z0-9_]{{40,}})"),
    ("a GitLab token", ("glpat-",), rf"{_EDGE}glpat-[A-Za-z0-9_-]{{20,}}"),
    ("a Slack token", ("xox", "xapp-"), rf"{_EDGE}(?:xox[abeoprs]-|xapp-)[A-Za-z0-9-]{{10,}}"),
    ("a Slack webhook", ("hooks.slack.com",),
     r"hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,}"),
    ("an Anthropic key", ("sk-ant-",), rf"{_EDGE}sk-ant-[A-Za-z0-9_-]{{20,}}"),
    ("an OpenAI key", ("sk-",),
     rf"{_EDGE}(?<!-)sk-(?!ant-)(?:(?:proj|svcacct|admin)-)?(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{{24,}}"),
    ("a Google key", ("AIza", "ya29."),
     rf"{_EDGE}(?:AIza[0-9A-Za-z_-]{{35}}|ya29\.[0-9A-Za-z_-]{{30,}})"),
    ("a Stripe key", ("_live_",), rf"{_EDGE}[rs]k_live_[0-9A-Za-z]{{16,}}"),
    ("an npm token", ("npm_",), rf"{_EDGE}npm_[A-Za-z0-9]{{36}}"),
    ("a PyPI token", ("pypi-",), rf"{_EDGE}pypi-[A-Za-z0-9_-]{{50,}}"),
    ("a Hugging Face token", ("hf_",), rf"{_EDGE}hf_[A-Za-z0-9]{{30,}}"),
    ("a SendGrid key", ("SG.",), rf"{_EDGE}SG\.[A-Za-z0-9_-]{{16,}}\.[A-Za-z0-9_-]{{16,}}"),
    ("an Azure storage key", ("AccountKey=",), r"AccountKey=[A-Za-z0-9+/]{60,}={0,2}"),
    ("a private key", ("PRIVATE KEY",), r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"),
    ("a signed token (JWT)", ("eyJ",),
     rf"{_EDGE}eyJ[A-Za-z0-9_-]{{8,}}\.eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{16,}}"),
    ("a password in an address", ("://",),
     r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@\"']{1,80}:[^\s/@\"'{}$<>*]{6,200}@[\w.-]+"),
    ("hashes of passwords", (":$",),
     r"(?:^|\n)[a-z_][a-z0-9_-]*:\$(?:1|2[aby]|5|6|y)\$[./A-Za-z0-9$]{20,}"),
)  # fmt: skip
_PATTERNS: dict[str, re.Pattern[str]] = {}
_MADE_UP = re.compile(r"(?i)example|placeholder|your[_-]|xxxx|\.\.\.|0123456789|password@|redacted")
_DISTINCT = 8  # different characters a real key has at least


def leaving(text: str, kind: Kind) -> Iterator[Flag]:
    """Find secrets in arguments; made-up ones, as documents have them, are none."""
    if kind is not Kind.ARGUMENTS:
        return
    for words, needed, shape in _SHAPES:
        if not any(piece in text for piece in needed):
            continue
        pattern = _PATTERNS.get(words)
        if pattern is None:
            pattern = _PATTERNS[words] = re.compile(shape)
        if any(_real(found[0]) for found in pattern.finditer(text)):
            yield flag(Code.SECRET, words=f"what looks like {words}")


def _real(found: str) -> bool:
    return not _MADE_UP.search(found) and len(set(found)) >= _DISTINCT
