"""What very many tools cost: until the first request is sent, and in the request itself."""

from __future__ import annotations

from collections.abc import Iterable

from tests.bench.measure import KAGE, Home, whole
from tests.bench.table import Figure, figure
from tests.llm import ScriptedModel, say
from tests.stubs import stub

MANY = 10_000
SOME = 300
PAGE = 500
START = 5.0  # seconds
TOKENS = 3_000


def measure() -> Iterable[Figure]:
    """Take ``kage -p`` with one server of one, 300 and 10,000 tools."""
    counts = (1, SOME, MANY)
    sizes: dict[int, int] = {}
    with Home() as home, ScriptedModel(then=say("done")) as model:

        def run(count: int) -> float:
            home.servers({"s": stub("pages", "--tools", count, "--page", PAGE)})
            before = len(model.requests)
            argv = (*KAGE, "-p", "go", "--model", "anthropic:claude-sonnet-4-6")
            spent = whole(argv, home, environ=model.environ())
            sizes[count] = model.requests[before].size
            return spent.wall

        found = {count: min(run(count) for _ in range(4)) for count in counts}
    one = ("1 tool", found[1])
    yield figure(f"kage -p with {SOME} tools", found[SOME], "s", base=one)
    yield figure(f"kage -p with {MANY:,} tools", found[MANY], "s", base=one, most=START)
    for count in (SOME, MANY):
        tokens = sizes[count] / 4
        yield figure(f"tokens of the first request, {count:,} tools", tokens, "", most=TOKENS)
