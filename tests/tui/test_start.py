"""The first frame: a usable prompt before anything heavy is imported."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("mcp", "pydantic", "httpx2", "lupa", "jsonschema")

PROGRAM = """
import asyncio, json, sys

HEAVY = {heavy!r}

def loaded():
    return sorted(name for name in sys.modules if name.partition(".")[0] in HEAVY)

from kage.tui.app import KageApp
from kage.tui import run

seen = {{"import": loaded()}}

def make_host():
    seen["first frame"] = loaded()
    seen["draft"] = app.chat.prompt.draft
    seen["frame"] = "> " in "\\n".join(
        strip.text for strip in app.screen._compositor.render_strips()
    )
    from tests.tui.fake_host import FakeHost
    return FakeHost()

app = KageApp(make_host, keys={{}}, theme="")

async def main():
    async with app.run_test() as pilot:
        while not app.status.ready:
            await pilot.pause()
        await pilot.press("h", "i")
        await pilot.pause()
        seen["typed"] = app.chat.prompt.draft

asyncio.run(main())
print(json.dumps(seen))
"""


def test_nothing_heavy_is_imported_before_the_first_frame() -> None:
    import json

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(heavy=HEAVY)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen == {"import": [], "first frame": [], "draft": "", "frame": True, "typed": "hi"}
