"""Colour code: lines of a known language to spans with roles.

Only languages on the list are tried: each lexer is a set of regular expressions that runs on text
a stranger wrote. Overlong lines stay plain. Pygments is imported with the first fence.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from kage.tui.transcript.cells import expand_tabs
from kage.tui.transcript.line import Span

LONGEST_LINE = 1_000  # characters
_NAMES = """
bash sh shell zsh console shell-session fish bat powershell c c++ cpp h hpp objective-c rust rs go
golang zig nim d java kotlin scala groovy clojure csharp c# cs fsharp vb.net swift dart python py
python3 pycon pytb ruby rb perl php lua r julia matlab haskell hs elixir erlang ocaml scheme lisp
common-lisp elisp racket javascript js jsx typescript ts tsx json jsonc json5 jsonl yaml yml toml
ini cfg properties xml html css scss sass less graphql sql mysql postgresql sqlite3 diff udiff
patch dockerfile docker make makefile cmake nix terraform hcl protobuf proto nginx tex latex vim
viml asm nasm llvm wast solidity http fortran ada prolog verilog vhdl awk sed svelte
"""
_LANGUAGES = frozenset(_NAMES.split())
_ALIASES = {"jsonc": "json", "jsonl": "json", "json5": "json", "patch": "diff", "h": "c",
            "hpp": "c++", "viml": "vim", "svelte": "html", "proto": "protobuf"}  # fmt: skip
_ROLES = (  # the first part of a token's name that fits decides
    ("Comment.Preproc", "builtin"), ("Comment", "comment"), ("Keyword.Constant", "number"),
    ("Keyword", "keyword"), ("Literal.String", "string"), ("Literal.Number", "number"),
    ("Literal", "string"), ("Operator.Word", "keyword"), ("Operator", "operator"),
    ("Name.Builtin", "builtin"), ("Name.Function", "name"), ("Name.Class", "name"),
    ("Name.Decorator", "name"), ("Name.Tag", "keyword"), ("Name.Attribute", "name"),
    ("Generic.Inserted", "added"), ("Generic.Deleted", "removed"), ("Generic.Subheading", "hunk"),
    ("Generic.Heading", "comment"), ("Generic.Prompt", "comment"), ("Generic.Output", ""),
)  # fmt: skip


@lru_cache(maxsize=64)
def lexer(info: str) -> Any | None:
    """Give the Pygments lexer for a fence's language line, None when kage does not colour it."""
    words = info.replace("{", " ").replace("}", " ").replace(",", " ").split()
    name = words[0].lower().lstrip(".") if words else ""
    if name not in _LANGUAGES:
        return None
    lexers: Any = import_module("pygments.lexers")  # ships no types
    return lexers.get_lexer_by_name(_ALIASES.get(name, name), stripnl=False, ensurenl=False)


@lru_cache(maxsize=512)
def _role(kind: Any) -> str:  # a Pygments token type
    name = str(kind).removeprefix("Token.")
    for prefix, role in _ROLES:
        if name.startswith(prefix):
            return f"block.{role}" if role else "block"
    return "block"


@lru_cache(maxsize=4096)
def colour_line(line: str, info: str) -> tuple[Span, ...]:
    """Colour one line by itself, as long as the fence it stands in is open."""
    return colour((line,), info)[0]


def colour(lines: tuple[str, ...], info: str) -> list[tuple[Span, ...]]:
    """Colour lines that belong together; tabs become spaces."""
    known = lexer(info)
    clean = [expand_tabs(line) for line in lines]
    if known is None or any(len(line) > LONGEST_LINE for line in clean):
        return [(Span(line, "block"),) if line else () for line in clean]
    out: list[list[Span]] = [[]]
    for kind, text in known.get_tokens("\n".join(clean)):
        role = _role(kind)
        for number, part in enumerate(text.split("\n")):
            if number:
                out.append([])
            if part:
                _push(out[-1], part, role)
    out += [[] for _ in range(len(clean) - len(out))]
    return [tuple(row) for row in out[: len(clean)]]


def _push(row: list[Span], text: str, role: str) -> None:
    if row and row[-1].role == role:
        row[-1] = Span(row[-1].text + text, role)
    else:
        row.append(Span(text, role))
