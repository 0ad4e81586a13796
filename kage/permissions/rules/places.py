"""Match patterns against paths, addresses and MCP arguments."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from kage.core import locations
from kage.core.canonical import NotCanonical, canonical
from kage.core.locations import is_inside, resolve
from kage.permissions.rules import glob

FOLD = sys.platform == "darwin"  # its file systems ignore case

_PORTS = {"http": 80, "https": 443}
_ODD = re.compile(r"[\x00-\x20\x7f\\]")
_MAX_PATH = 4096


def climbs(value: str) -> bool:
    """Say whether ``value`` has a ``..`` segment, also a percent-encoded one."""
    return any(".." in re.split(r"[/\\?#]", text) for text in (value, unquote(value)))


# -- paths ---------------------------------------------------------------------------------------


def lexical(workspace: Path, raw: str) -> Path:
    """Give the absolute path ``raw`` spells, links not followed."""
    return Path(os.path.normpath(locations.spelled(workspace, raw)))


def path_allowed(pattern: str, raw: str, path: Path, workspace: Path) -> bool:
    """Say whether an allow ``pattern`` covers ``raw``, which means the resolved ``path``.

    A relative pattern is about places inside the workspace only, whatever links lie in it.
    """
    if climbs(raw):
        return False
    start = glob.head(pattern)
    if not start.startswith(("/", "~")):
        return is_inside(path, (workspace,)) and _fits(
            f"{glob.escape(str(workspace))}/{_trimmed(pattern)}", path
        )
    return any(_fits(spelled, path) for spelled in _absolute(pattern, workspace))


def path_touched(pattern: str, raw: str, path: Path, workspace: Path) -> bool:
    """Say whether a deny or ask ``pattern`` fits ``path``, or any way to spell it."""
    spelled = lexical(workspace, raw)
    return any(
        _fits(form, place) for form in _absolute(pattern, workspace) for place in {path, spelled}
    )


def _absolute(pattern: str, workspace: Path) -> Iterator[str]:
    """Give ``pattern`` from the root on: as spelled, and with the links in its plain part."""
    start = glob.head(pattern)
    folder, slash, _ = start.rpartition("/")
    if glob.literal(pattern) is not None:
        yield glob.escape(str(lexical(workspace, start)))
        yield glob.escape(str(resolve(workspace, start)))
        return
    rest = pattern[len(glob.escape(folder + slash)) :]
    if not pattern.startswith(glob.escape(folder + slash)):  # an escape the person need not write
        folder, rest = "", pattern
    if folder == "" and slash and start.startswith("/"):
        yield f"/{rest.lstrip('/')}"
        return
    for place in {lexical(workspace, folder), resolve(workspace, folder)}:
        yield f"{glob.escape(str(place)).rstrip('/')}/{rest}"


def _fits(pattern: str, path: Path) -> bool:
    """Match ``path``; a pattern for everything in a folder is also about the folder."""
    text = str(path)
    if glob.matches(pattern, text, fold=FOLD):
        return True
    for ending in ("/**", "/*"):
        if pattern.endswith(ending):
            return glob.matches(pattern.removesuffix(ending) or "/", text, fold=FOLD)
    return False


def _trimmed(pattern: str) -> str:
    while pattern.startswith("./"):
        pattern = pattern[2:].lstrip("/")
    return pattern.rstrip("/") or "*"


# -- addresses -----------------------------------------------------------------------------------


def normal_url(raw: str) -> str | None:
    """Give the one spelling of an address, or None when it is odd: no host, user info, blanks."""
    text = raw.strip()
    if _ODD.search(text):
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if not host or scheme not in _PORTS or "@" in parts.netloc:
        return None
    place = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS[scheme]:
        place += f":{port}"
    return urlunsplit((scheme, place, parts.path or "/", parts.query, ""))


def url_allowed(pattern: str, raw: str) -> bool:
    """Say whether an allow ``pattern`` covers the address."""
    url = normal_url(raw)
    if url is None or climbs(url):
        return False
    return any(glob.matches(form, url) for form in {pattern, _normal_pattern(pattern)})


def url_touched(pattern: str, raw: str) -> bool:
    """Say whether a deny or ask ``pattern`` fits any way to read the address."""
    folded = {raw, raw.strip(), unquote(raw)}
    if url := normal_url(raw):
        folded |= {url, unquote(url), *_host_forms(url)}
        parts = urlsplit(unquote(url))
        path = posixpath.normpath(parts.path or "/")
        folded.add(urlunsplit((parts.scheme, parts.netloc, path, parts.query, "")))
    else:
        cleaned = _ODD.sub("", raw)
        folded |= {cleaned, re.sub(r"^(\w+://)[^/]*@", r"\1", cleaned)}
    forms = {pattern, _normal_pattern(pattern)}
    return any(glob.matches(form, text, fold=True) for form in forms for text in folded)


def _normal_pattern(pattern: str) -> str:
    """Give a pattern without wildcards the same spelling an address gets."""
    plain = glob.literal(pattern)
    url = normal_url(plain) if plain is not None else None
    return glob.escape(url) if url is not None else pattern


def _host_forms(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    names = {host}
    for change in (lambda name: name.encode("idna").decode(), _from_idna):
        try:
            names.add(change(host))
        except (UnicodeError, ValueError):
            continue
    for name in names:
        place = f"[{name}]" if ":" in name else name
        port = f":{parts.port}" if parts.port is not None else ""
        yield urlunsplit((parts.scheme, place + port, parts.path, parts.query, ""))


def _from_idna(name: str) -> str:
    return name.encode("ascii").decode("idna")


# -- arguments -----------------------------------------------------------------------------------


def argument_globs(pattern: str) -> tuple[tuple[str, str], ...] | None:
    r"""Split ``name=glob,name=glob``; None when it is malformed. ``\,`` and ``\=`` are plain."""
    found: list[tuple[str, str]] = []
    for part in _split(pattern, ","):
        name, *rest = _split(part, "=", once=True)
        if not rest or not name:
            return None
        found.append((_plain(name), re.sub(r"\\([,=])", r"\1", rest[0])))
    return tuple(found)


def escape_argument(name: str, value: str) -> str:
    """Give the pattern for exactly this value of an argument."""
    key = re.sub(r"[\\,=]", r"\\\g<0>", name)
    return f"{key}={_comma(glob.escape(value))}"


def arguments_allowed(pattern: str, arguments: Mapping[str, object]) -> bool:
    """Say whether an allow ``pattern`` covers the call: each named argument fits its glob."""
    parts = argument_globs(pattern)
    if not parts:
        return False
    for name, wanted in parts:
        if name not in arguments:
            return False
        text = spelled(arguments[name])
        if climbs(text) or not glob.matches(wanted, text):
            return False
    return True


def arguments_touched(pattern: str, arguments: Mapping[str, object], workspace: Path) -> bool:
    """Say whether a deny or ask ``pattern`` fits the call, whatever way paths are spelled."""
    parts = argument_globs(pattern)
    if not parts:
        return True  # malformed: closed
    return all(
        name in arguments
        and any(glob.matches(wanted, text) for text in _ways(spelled(arguments[name]), workspace))
        for name, wanted in parts
    )


def spelled(value: object) -> str:
    """Give the text patterns see: a string as it is, anything else as canonical JSON."""
    if isinstance(value, str):
        return value
    try:
        return canonical(value).decode()
    except NotCanonical:
        return repr(value)


def path_like(value: object, *, limit: int = 400) -> Iterator[str]:
    """Yield the strings in ``value`` that could name a file, at most ``limit``."""
    waiting: list[object] = [value]
    given = 0
    while waiting and given < limit:
        item = waiting.pop()
        if isinstance(item, str):
            if 0 < len(item) < _MAX_PATH and "\n" not in item and "\0" not in item:
                given += 1
                yield unquote(item.removeprefix("file://")) if item.startswith("file:") else item
        elif isinstance(item, Mapping):
            waiting += item.values()
        elif isinstance(item, Sequence) and not isinstance(item, bytes):
            waiting += item


def _ways(text: str, workspace: Path) -> Iterator[str]:
    yield text
    if not text or len(text) > _MAX_PATH or "\n" in text or "\0" in text:
        return
    yield posixpath.normpath(text)
    yield text.replace("\\", "/")
    yield unquote(text)
    for place in {lexical(workspace, text), resolve(workspace, text)}:
        yield str(place)
        if place.is_relative_to(workspace):
            yield str(place.relative_to(workspace))


def _split(text: str, mark: str, *, once: bool = False) -> list[str]:
    """Split at ``mark`` where no backslash stands in front of it."""
    parts = [""]
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            parts[-1] += text[at : at + 2]
            at += 2
        elif text[at] == mark and not (once and len(parts) == 2):
            parts.append("")
            at += 1
        else:
            parts[-1] += text[at]
            at += 1
    return parts


def _comma(text: str) -> str:
    return text.replace(",", "\\,")


def _plain(name: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", name)
