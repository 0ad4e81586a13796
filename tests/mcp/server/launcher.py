"""Run ``serve`` as a process of its own: ``python -m tests.mcp.server.launcher '{"root": …}'``.

With ``"stub": true`` it offers tools made for the wire's tests, else kage's own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kage.mcp.server import lean  # before anything that imports asyncio
from kage.mcp.server.serve import serve
from kage.mcp.server.service import Ruling, Service

assert lean

if TYPE_CHECKING:
    from kage.core.tools import Tool, ToolSpec


def main() -> int:
    options: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    root = Path(options.get("root", ".")).resolve()

    def rules(spec: ToolSpec, arguments: Any) -> Ruling | str | None:
        if spec.name in options.get("deny", ()):
            return f"refused by the rule {spec.name}(*)"
        if spec.name in options.get("ask", ()):
            return Ruling(verdict="ask", rule=f"{spec.name}(*)")
        return None

    started: list[Any] = []

    def tools() -> tuple[Tool, ...]:
        if options.get("stub"):
            from tests.mcp.server.stub_tools import TOOLS

            return TOOLS
        from kage.mcp.client.watchdog import Watchdog
        from kage.tools import builtin

        watchdog = Watchdog()
        started.append(watchdog)
        names = options.get("tools")
        return builtin.create(
            spawner=watchdog,
            environ=os.environ,
            names=names,
            allow_loopback=bool(options.get("allow_loopback")),
        )

    async def stop() -> None:
        for watchdog in started:
            await watchdog.close()

    service = Service(
        root=root,
        scratch=root / ".scratch",
        tools=tools,
        version="1.2.3",
        rules=rules,
        confirm=bool(options.get("confirm")),
        instructions=options.get("instructions", ""),
    )
    code = serve(service, on_stop=stop)
    if path := options.get("modules"):
        Path(path).write_text("\n".join(sys.modules))
    return code


if __name__ == "__main__":
    sys.exit(main())
