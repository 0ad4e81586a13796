"""Draw the README's picture from the real app: ``python -m tests.tui.picture``."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from kage.tui.app import KageApp
from tests.tui.demo import Scene, make_host
from tests.tui.fake_host import WORKSPACE
from tests.waiting import until

PICTURE = Path(__file__).resolve().parent.parent.parent / "docs" / "picture.svg"
SIZE = (100, 30)


async def draw() -> str:
    """Play the demo up to its first question and give the screen as SVG."""
    scene = Scene("chat")
    app = KageApp(lambda: make_host(scene), keys={}, theme="textual-dark", workspace=WORKSPACE)
    async with app.run_test(size=SIZE) as pilot:
        await until(lambda: app.host is not None and app.host.model)
        await pilot.press(*"which tests touch the cart?", "enter")
        await until(lambda: app.chat.panel.display)
        await pilot.pause(0.6)
        picture = app.export_screenshot(title="kage")
        await pilot.press("escape", "escape")
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # fetch nothing
    picture = re.sub(r"<!--.*?-->\s*", "", picture, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in picture.splitlines()) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(asyncio.run(draw()), encoding="utf-8")
    print(PICTURE)
