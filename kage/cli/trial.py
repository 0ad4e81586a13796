"""Try one server: start it, look at it, stop it. ``test``, ``add`` and the form use the same."""

from __future__ import annotations

import sys
import time
from typing import Any

from kage.cli.ground import Ground
from kage.config.schema import ServerSpec
from kage.core.sanitise import visible
from kage.core.servers import ServerState

_LINES = ("name", "transport", "state", "protocol", "version", "handshake", "tools", "ping")


async def try_server(here: Ground, spec: ServerSpec) -> dict[str, Any]:
    """Start ``spec``, list its tools, ask whether it lives, stop it; its status with times in ms.

    It need not stand in any file yet. Never raises for a server that does not work: that is what
    ``state`` and ``fault`` say.
    """
    from kage.cli.servers import connected

    began = time.monotonic()
    async with connected(here.with_server(spec), [spec.name], even_disabled=True) as up:
        report: dict[str, Any] = up.status(spec.name)
        report["ready_ms"] = round((time.monotonic() - began) * 1000)
        report["ping_ms"] = None
        report["warnings"] = up.warnings(spec.name)
        if works(report):
            began = time.monotonic()
            if await up.manager.ping(spec.name):
                report["ping_ms"] = round((time.monotonic() - began) * 1000, 1)
    return report


def works(report: dict[str, Any]) -> bool:
    """Say whether the server that was tried is of use."""
    return bool(report["state"] == ServerState.CONNECTED.value)


def print_report(report: dict[str, Any]) -> None:
    """Print what came out, the failure on stderr."""
    ping = report["ping_ms"]
    shown = {
        **report,
        "transport": _transport(report),
        "handshake": f"{report['ready_ms']} ms" if works(report) else "",
        "ping": f"{ping} ms" if ping is not None else "no answer" if works(report) else "",
    }
    for key in _LINES:
        print(f"{key:10} {visible(str(shown[key]), single_line=True)}".rstrip())
    for reason in report["dropped"]:
        print(f"{'left out':10} {visible(reason, single_line=True)}")
    for text in report["warnings"]:
        print(f"{'warning':10} {visible(text, single_line=True)}")
    print_fault(report)


def print_fault(report: dict[str, Any]) -> None:
    """Print why a server failed, if it did, on stderr."""
    fault = report["fault"]
    if not fault:
        return
    text = f"{fault['stage']}: {fault['what']}"
    text = f"{text}: {fault['why']}" if fault["why"] else text
    print(visible(f"kage: {text}"), file=sys.stderr)
    for line in fault["stderr"]:
        print(visible(f"  | {line}"), file=sys.stderr)
    if fault["fix"]:
        print(visible(f"  {fault['fix']}"), file=sys.stderr)


def _transport(report: dict[str, Any]) -> str:
    advice = report["deprecated"]
    return f"{report['transport']} (deprecated: {advice})" if advice else str(report["transport"])
