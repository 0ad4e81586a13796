"""Addresses a stranger gives kage for a person to open: what is fit to be opened, and by whom.

Nothing here passes a shell, and nothing is opened unless the person asked for it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

MAX_LENGTH = 8192  # characters of an address
_LEGAL = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&()*+,;=%]+")  # RFC 3986, but no quote marks
_OPENERS = ("xdg-open", "wslview", "gio")


class BadLink(ValueError):
    """An address is not one kage would open; the text says why."""


def check_link(url: str) -> SplitResult:
    """Take an http(s) address apart that holds nothing a shell, a log or a person misreads.

    Raises:
        BadLink: it is none.
    """
    if len(url) > MAX_LENGTH:
        raise BadLink(f"the address is longer than {MAX_LENGTH} characters")
    if not _LEGAL.fullmatch(url):
        raise BadLink("the address holds a character no address may have")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadLink("the address cannot be read") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise BadLink(f"the address begins with {parts.scheme[:20] or 'no scheme'}:, not https:")
    if "@" in parts.netloc:
        raise BadLink("the address carries a user name before its host")
    if not host:
        raise BadLink("the address has no host")
    if re.search(r"[$&()*+,;=!]", parts.netloc):
        raise BadLink("the host holds a character no host may have")
    return parts


def host_of(url: str) -> str:
    """Give the host of an address as a person should read it: ASCII, with its port.

    International names are spelled in punycode, so that look-alike letters show.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        host = host.encode("idna").decode("ascii") if not host.isascii() else host
    except UnicodeError:
        host = host.encode("unicode_escape").decode("ascii")
    if ":" in host:
        host = f"[{host}]"
    return f"{host}:{parts.port}" if parts.port is not None else host


def browser(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Find the command that opens an address, () when there is none.

    ``BROWSER`` is taken when it names a program, without the options some give it.
    """
    path = environ.get("PATH")
    for named in filter(None, environ.get("BROWSER", "").split(os.pathsep)):
        found = shutil.which(named, path=path)
        if found:
            return (found,)
    if sys.platform == "darwin":
        return ("/usr/bin/open",)
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY") or environ.get("WSL_INTEROP")):
        return ()
    for name in _OPENERS:
        found = shutil.which(name, path=path)
        if found:
            return (found, "open") if name == "gio" else (found,)
    return ()


def open_link(url: str, environ: Mapping[str, str]) -> str:
    """Open ``url`` in the person's browser; give the reason when it cannot be, else "".

    The browser is the person's own: neither tagged nor ended with kage.

    Raises:
        BadLink: the address is not one to open.
    """
    check_link(url)
    command = browser(environ)
    if not command:
        return "no browser was found here"
    try:
        opened = subprocess.Popen(
            [*command, url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=dict(environ),
        )
    except OSError as error:
        return error.strerror or "the browser did not start"
    threading.Thread(target=opened.wait, name="browser", daemon=True).start()  # no zombie stays
    return ""
