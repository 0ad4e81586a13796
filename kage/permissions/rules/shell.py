"""Read a shell line with a real parser: its commands, its words, and what no rule can see through.

tree-sitter-bash is tolerant, so its tree is not believed by itself: every word is read again
character by character, and nothing but blanks may stand between two nodes. Whatever is not on the
list of understood forms makes the line *opaque*: an ``allow`` pattern never matches an opaque
line, while its commands are still found for ``deny`` and ``ask``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kage.permissions.rules.line import Command, Line, decode, unescape, word_set

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LENGTH = 10_000  # characters; the grammar needs quadratic time for some hostile lines
MAX_DEPTH = 150


_STRUCTURE = word_set(
    "program list pipeline subshell compound_statement if_statement elif_clause else_clause"
    " while_statement for_statement do_group negated_command redirected_statement"
    " command_substitution process_substitution"
)
_TOKENS = word_set(
    "; & && || | |& ( ) { } if then elif else fi while until do done for in ! $( <( >("
) | {"\n"}
_STANDS_ALONE = word_set("{ } ! if then elif else fi while until do done for in")
_VALUES = word_set(
    "word number string raw_string ansi_c_string translated_string concatenation simple_expansion"
    " expansion command_substitution process_substitution arithmetic_expansion brace_expression"
    " extglob_pattern regex array subscript variable_name test_operator special_variable_name"
)
_RESERVED = word_set(
    "if then elif else fi case esac for select while until do done in function coproc"
)
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_BREAKS = re.compile(r"(?:[ \t\n]|\\\n)*")
_NAME = re.compile(r"[A-Za-z0-9_./+:@%,-]+")
_LOOP_NAME = re.compile(r"(?!.*_proxy$)[a-z][a-z0-9_]*")  # never PATH, LD_PRELOAD or their like
_BARE = re.compile(r"(?:[^\\;&|<>()$`\"'\s]|\\.)+", re.DOTALL)
_QUOTED = re.compile(r"(?:[^\\$`\"]|\\.|\$(?![A-Za-z0-9_{(\[@*#?$!'\"-]))*", re.DOTALL)
_HARMLESS = re.compile(
    r"\d*[<>]&[ \t]*(?:\d+|-)|(?:\d*(?:>|>>|>\||<)|&>|&>>|>&)[ \t]*/dev/null", re.DOTALL
)
# The grammar's scanner asks the C library about each character's class and crashes on one outside
# its tables. So it sees "_" for each: part of a word, as it is for bash, and of no keyword. One
# character stays one byte, and every text is cut from the line itself.
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_HALF = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def parse(text: str) -> Line:
    """Take ``text`` apart; never raises, whatever it holds."""
    if len(text) > MAX_LENGTH:
        return Line(text=text, commands=(), opaque="it is too long to read", broken=True)
    reader = _Reader(text)
    reader.read()
    return Line(
        text=text,
        commands=tuple(reader.commands),
        opaque=reader.opaque,
        broken=reader.broken,
        targets=tuple(reader.targets),
        feeds=tuple(reader.feeds),
        variables=reader.variables,
    )


_parser: Parser | None = None


def _make_parser() -> Parser:
    global _parser  # noqa: PLW0603 - one grammar per process, loaded with the first shell line
    if _parser is None:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        _parser = Parser(Language(tree_sitter_bash.language()))
    return _parser


class _Reader:
    """Walks one tree and keeps what it finds."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.source = _NOT_ASCII.sub("_", text).encode("ascii")
        self.commands: list[Command] = []
        self.targets: list[str] = []
        self.feeds: list[str] = []
        self.variables: dict[str, str] = {}
        self.opaque = "it holds control characters" if _CONTROL.search(text) else ""
        self.broken = False
        if _HALF.search(text):
            self._doubt("it is no proper text")

    def read(self) -> None:
        root = _make_parser().parse(self.source).root_node
        if root.has_error:
            self.broken = True
            self._doubt("it cannot be parsed")
        self._gap(0, root.start_byte, _BREAKS)
        self._gap(root.end_byte, len(self.source), _BREAKS)
        self._statement(root, 0)

    # -- statements --------------------------------------------------------------------------

    def _statement(self, node: Node, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.broken = True
            self._doubt("it is nested too deeply")
            return
        match node.type:
            case "command":
                self._command(node, depth)
            case "redirected_statement":
                self._redirected(node, depth)
            case "variable_assignment" | "variable_assignments":
                self._doubt("it sets a variable")
                self._assignment(node, depth)
            case "declaration_command" | "unset_command" | "test_command":
                self._doubt(f"it uses {self._raw(node).split(None, 1)[0]}")
                self._keep(node, tuple(self._raw(node).split()), exact=False)
                self._children(node, depth)
            case "for_statement":
                self._loop(node)
                self._structure(node, depth)
            case kind if kind in _STRUCTURE:
                self._structure(node, depth)
            case kind if kind in _VALUES:
                self._value(node, depth)
            case "heredoc_redirect" | "herestring_redirect" | "file_redirect":
                self._doubt("it redirects without a command")
                self._redirect(node, depth)
            case kind:
                self._doubt(f"it holds a {kind.replace('_', ' ')}")
                self._children(node, depth)

    def _children(self, node: Node, depth: int) -> None:
        for child in node.children:
            if child.is_named:
                self._statement(child, depth + 1)

    def _structure(self, node: Node, depth: int) -> None:
        if node.type in ("command_substitution", "process_substitution") and (
            not self._raw(node).lstrip().startswith(("$(", "<(", ">("))
        ):
            self._doubt("it holds backquotes")
            inner = self._raw(node).strip()[1:-1]
            self.feeds.append(re.sub(r"\\([\\`$])", r"\1", inner))
        at = node.start_byte
        for child in node.children:
            self._gap(at, child.start_byte, _BREAKS)
            at = child.end_byte
            if child.is_named:
                self._statement(child, depth + 1)
            elif child.type not in _TOKENS:
                self._doubt(f"it holds {child.type}")
            elif child.type in _STANDS_ALONE and not self._stands_alone(child):
                self._doubt(f"{child.type} is part of a word")
        if not node.named_child_count and node.type != "program":
            self._doubt("part of it is empty")
        self._gap(at, node.end_byte, _BREAKS)

    def _loop(self, node: Node) -> None:
        variable = node.child_by_field_name("variable")
        if self._raw(node)[:3] != "for" or variable is None:
            self._doubt("it holds a loop of an unusual form")
        elif not _LOOP_NAME.fullmatch(self._raw(variable)):
            self._doubt(f"its loop sets {self._raw(variable)}")
        else:
            values = node.children_by_field_name("value")
            self.variables[self._raw(variable)] = " ".join(map(self._raw, values))

    def _assignment(self, node: Node, depth: int) -> None:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if name is not None and value is not None:
            text, _ = self._value(value, depth + 1)
            self.variables[self._raw(name)] = text
            self.targets.append(text)
        else:
            self._children(node, depth)

    # -- commands ----------------------------------------------------------------------------

    def _command(self, node: Node, depth: int, redirected: Node | None = None) -> None:
        words: list[str] = []
        exact = True
        start: int | None = None
        ended = -1  # where the word before ends
        at = node.start_byte
        for child in node.children:
            self._gap(at, child.start_byte, _BLANKS)
            at = child.end_byte
            if child.type == "variable_assignment":
                self._assignment(child, depth)
                continue
            if child.type.endswith("_redirect"):
                self._redirect(child, depth)
                if not _HARMLESS.fullmatch(self._raw(child)):
                    self._doubt("it redirects in the middle of a command")
                continue
            start = child.start_byte if start is None else start
            for part in child.children if child.type == "command_name" else [child]:
                if not part.is_named and part.type not in ("=~", "=="):
                    self._doubt(f"it holds {part.type}")
                text, known = self._value(part, depth + 1)
                if words and part.start_byte == ended:  # one word to bash, two to the grammar
                    text = words.pop() + text
                    self._doubt("one of its words is not plain")
                ended = part.end_byte
                if not words and not (known and _NAME.fullmatch(text) and text not in _RESERVED):
                    self._doubt("a command's name is not plain")
                words.append(text)
                exact = exact and known
        self._gap(at, node.end_byte, _BLANKS)
        if not words:
            self._doubt("it holds no command")
            return
        before = self._slice(node.start_byte, start) if start is not None else ""
        self._keep(node, tuple(words), exact=exact, assignments=before, redirected=redirected)

    def _keep(
        self,
        node: Node,
        words: tuple[str, ...],
        *,
        exact: bool,
        assignments: str = "",
        redirected: Node | None = None,
    ) -> None:
        whole = rest = ""
        if redirected is not None:
            whole = self._raw(redirected)
            rest = self._slice(node.end_byte, redirected.end_byte).strip()
        self.commands.append(
            Command(
                raw=self._raw(node),
                words=words,
                exact=exact,
                assignments=assignments,
                redirected=whole,
                redirections=rest,
            )
        )

    def _redirected(self, node: Node, depth: int) -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child != body]
        touching = [item for item in redirects if not _HARMLESS.fullmatch(self._raw(item))]
        at = node.start_byte
        for child in node.children:
            self._gap(at, child.start_byte, _BLANKS)
            at = child.end_byte
        simple = body is not None and body.type == "command" and node.children[0] == body
        if touching and not simple:
            self._doubt("it redirects more than one command")
        if body is not None and simple and body.type == "command":
            self._command(body, depth + 1, node if touching else None)
        elif body is not None:
            self._statement(body, depth + 1)
        for item in redirects:
            self._redirect(item, depth)

    def _redirect(self, node: Node, depth: int) -> None:
        if node.type == "file_redirect":
            ended = -1
            for child in node.children:
                if child.is_named and child.type != "file_descriptor":
                    text, _ = self._value(child, depth + 1)
                    if child.start_byte == ended:  # as in a command
                        text = self.targets.pop() + text
                        self._doubt("one of its words is not plain")
                    self.targets.append(text)
                    ended = child.end_byte
            return
        self._doubt("it feeds text into a command")
        if node.type == "herestring_redirect":
            for child in node.children:
                if child.is_named:
                    text, _ = self._value(child, depth + 1)
                    self.feeds.append(text)
            return
        for child in node.children:
            if child.type == "heredoc_body":
                self.feeds.append(self._raw(child))
                self._children(child, depth + 1)
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end"):
                self._statement(child, depth + 1)

    # -- words -------------------------------------------------------------------------------

    def _value(self, node: Node, depth: int) -> tuple[str, bool]:
        """Give what ``node`` stands for, and whether that is known to the last character."""
        raw = self._raw(node)
        if depth > MAX_DEPTH:
            self.broken = True
            self._doubt("it is nested too deeply")
            return raw, False
        match node.type:
            case "word" | "number" | "variable_name" | "special_variable_name" | "brace_expression":
                if node.named_child_count or not _BARE.fullmatch(raw):
                    self._doubt("one of its words is not plain")
                    self._children(node, depth)
                    return raw, False
                return re.sub(r"\\(.)", unescape, raw, flags=re.DOTALL), True
            case "raw_string":
                if len(raw) < 2 or raw[0] != "'" or raw[-1] != "'" or "'" in raw[1:-1]:
                    self._doubt("one of its words is not plain")
                return raw[1:-1], True
            case "string":
                return self._string(node, depth)
            case "concatenation":
                return self._joined(node, depth)
            case "simple_expansion":
                return raw, False
            case "expansion" if re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", raw):
                return raw, False
            case "command_substitution" | "process_substitution":
                self._structure(node, depth)
                return raw, False
            case "ansi_c_string":
                self._doubt("one of its words is spelled with escapes")
                return decode(raw[2:-1]), False
            case kind:
                self._doubt(f"one of its words is a {kind.replace('_', ' ')} of an unusual form")
                self._children(node, depth)
                return raw, False

    def _string(self, node: Node, depth: int) -> tuple[str, bool]:
        raw = self._raw(node)
        if len(raw) < 2 or raw[0] != '"' or raw[-1] != '"':
            self._doubt("one of its words is not plain")
            return raw, False
        parts: list[str] = []
        exact = True
        at = node.start_byte + 1
        for child in node.children:
            if not child.is_named or child.type == "string_content":
                continue
            parts.append(self._quoted(at, child.start_byte))
            text, _ = self._value(child, depth + 1)
            parts.append(text)
            exact = False
            at = child.end_byte
        parts.append(self._quoted(at, node.end_byte - 1))
        return "".join(parts), exact

    def _quoted(self, start: int, end: int) -> str:
        raw = self._slice(start, end)
        if not _QUOTED.fullmatch(raw):
            self._doubt("one of its words is not plain")
        return re.sub(r"\\([$`\"\\\n])", unescape, raw)

    def _joined(self, node: Node, depth: int) -> tuple[str, bool]:
        parts: list[str] = []
        exact = True
        at = node.start_byte
        for child in node.children:
            if child.start_byte != at:
                self._doubt("one of its words is not plain")
            at = child.end_byte
            text, known = self._value(child, depth + 1) if child.is_named else ("", False)
            if not child.is_named:
                self._doubt("one of its words is not plain")
            parts.append(text)
            exact = exact and known
        return "".join(parts), exact

    # -- source ------------------------------------------------------------------------------

    def _slice(self, start: int, end: int) -> str:
        return self.text[start:end]

    def _raw(self, node: Node) -> str:
        return self._slice(node.start_byte, node.end_byte)

    def _stands_alone(self, node: Node) -> bool:
        """Say whether bash sees a word of its own: ``{}`` and ``!git`` are names of commands."""
        before = self.text[: node.start_byte][-1:]
        behind = self.text[node.end_byte :][:1]
        return (not before or before in " \t\n;&|()") and (not behind or behind in " \t\n;&|()<>")

    def _gap(self, start: int, end: int, allowed: re.Pattern[str]) -> None:
        if end > start and not allowed.fullmatch(self._slice(start, end)):
            self._doubt("part of it was not understood")

    def _doubt(self, why: str) -> None:
        self.opaque = self.opaque or why or "part of it was not understood"
