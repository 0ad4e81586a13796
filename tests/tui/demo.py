"""The app on a scripted host, for looking at it and for the tests on a real terminal.

``python -m tests.tui.demo LOG [SCENE]``; a prompt starts the scene: ``chat`` streams a reply with
two calls that ask, ``fail`` ends in a failure, ``crash`` is an event nobody knows,
``broken`` a widget that cannot be drawn, ``noise`` writes to
file descriptor 2.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from kage.core import events as ev
from kage.core.commands import (
    AnswerApproval,
    Command,
    Interrupt,
    ResumeSession,
    RunShell,
    SetMode,
    SetModel,
    SubmitPrompt,
)
from kage.core.content import Text, as_text
from kage.core.events import RunEnd
from kage.core.gate import Answer, Reply
from kage.core.levels import Level
from kage.core.messages import Outcome, Stop, UserMessage
from kage.core.servers import ServerState
from kage.core.sessions import SessionInfo
from kage.providers.base import ModelInfo
from kage.tui.app import KageApp
from kage.tui.run import run
from kage.tui.widgets.bars import Header
from tests.tui import fake_host as fake
from tests.tui.fake_host import FakeHost

REPLY = """I'll look at **both** tests and then run them.

```python
def test_cart():
    assert cart.total() == 12
```

- the first reads the cart
- the second writes it
"""
ARGUMENTS = {
    "path": "tests/test_cart.py",
    "pattern": "cart\u202e.*total",
    "replacement": "\n".join(f"line {index} of something long" for index in range(40)),
    "limits": {"lines": 20, "bytes": [1, 2, 3]},
    "dry_run": "true",
}
DIFF = """--- a/shop/cart.py
+++ b/shop/cart.py
@@ -1,3 +1,3 @@
 def total(self):
-    return sum(self.items)
+    return sum(item.price for item in self.items)
"""


class Scene:
    """Plays one scene for each prompt."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.task: asyncio.Task[None] | None = None
        self.answers: dict[str, asyncio.Future[Answer]] = {}

    def on_send(self, host: FakeHost, command: Command) -> None:
        match command:
            case SubmitPrompt(content=content):
                if host.running:
                    host.publish(ev.PromptsWaiting(steering=(as_text(content),), queued=()))
                else:
                    self.task = asyncio.ensure_future(self.play(host, as_text(content)))
            case AnswerApproval(question_id=question_id, reply=reply):
                self.answers[question_id].set_result(reply.answer)
            case Interrupt():
                if self.task is not None:
                    self.task.cancel()
                if host.running:
                    host.reply("", stop=Stop.INTERRUPTED)
                    host.finish_run(RunEnd.INTERRUPTED)
            case SetModel(model=model):
                host.publish(ev.ModelChanged(model=model, reason="you chose it"))
            case SetMode(mode=mode):
                host.publish(ev.ModeChanged(mode=mode))
            case RunShell(line=line):
                host.publish(ev.Noticed(level=Level.INFO, what=f"$ {line}"))
            case ResumeSession(session_id=session_id):
                messages = (UserMessage(content=(Text("an older prompt"),)),)
                host.publish(
                    ev.SessionOpened(session_id=session_id, title="older", messages=messages)
                )
            case _:
                pass

    async def play(self, host: FakeHost, prompt: str) -> None:
        host.start_run(prompt, message_id=f"r{len(host.sent)}")
        reply = f"r{len(host.sent)}"
        if self.name == "noise":
            os.write(2, b"\x1b[2J\x1b[Hnoise on file descriptor 2\n" * 5)
        if self.name == "broken":
            raise_when_drawn()
        if self.name == "crash":
            host.publish("not an event")  # type: ignore[arg-type]  # what the folder cannot fold
        for start in range(0, len(REPLY), 7):
            host.publish(ev.TextStreamed(message_id=reply, text=REPLY[start : start + 7]))
            await asyncio.sleep(0.01)
        if self.name == "fail":
            host.finish_run(
                RunEnd.FAILED, "The key was refused", "401 invalid x-api-key [bold]",
                "Check ANTHROPIC_API_KEY",
            )  # fmt: skip
            return
        specs = (fake.tool(), fake.tool("edit_file"))
        names = [spec.name for spec in specs]
        calls = tuple(fake.call(name, f"c{n}{reply}") for n, name in enumerate(names))
        host.reply(REPLY, message_id=reply, stop=Stop.TOOLS, calls=calls)
        for made, spec in zip(calls, specs, strict=True):
            host.publish(ev.ToolQueued(call=made, spec=spec))
        for index, spec in enumerate(specs):
            name = f"q{index}{reply}"
            self.answers[name] = asyncio.get_running_loop().create_future()
            changes = (
                {"preview": DIFF, "red": True, "warnings": ("an invisible character in pattern",)}
                if index
                else {"scopes": (f"{spec.name}(path=tests/*)", spec.name)}
            )
            arguments = ARGUMENTS if index else None
            made_question = fake.question(name, spec=spec, arguments=arguments, **changes)
            host.publish(ev.ApprovalRequested(question=made_question))
        for index, made in enumerate(calls):
            answer = await self.answers[f"q{index}{reply}"]
            ok = answer in (Answer.YES, Answer.SESSION, Answer.ALWAYS)
            host.publish(
                ev.ApprovalSettled(
                    question_id=f"q{index}{reply}",
                    reply=Reply(answer=Answer.YES if ok else Answer.NO),
                )
            )
            if ok:
                host.publish(ev.ToolStarted(call_id=made.id, decision=fake.decision()))
                for step in range(5):
                    host.publish(
                        ev.ToolProgressed(
                            call_id=made.id, progress=step, total=5, message=f"file {step}"
                        )
                    )
                    await asyncio.sleep(0.05)
            text = "def test_cart(): ...\n18 matches" if ok else "The person said no."
            outcome = Outcome.OK if ok else Outcome.REFUSED
            host.publish(ev.MessageAppended(message=fake.result(text, made.id, outcome)))
        host.publish(
            ev.TurnStarted(run_id="run1", turn=2, message_id=f"{reply}b", model=host.model)
        )
        host.reply("Done: both tests pass.", message_id=f"{reply}b")
        host.publish(ev.ContextMeasured(tokens=24_000, window=200_000, cost=0.031))
        host.finish_run()


def raise_when_drawn() -> None:
    """Break a widget the way a mistake in its drawing would."""

    def render(self: object) -> None:
        raise RuntimeError("cannot draw")

    Header.render = render  # type: ignore[method-assign, assignment]


def make_host(scene: Scene) -> FakeHost:
    now = time.time()
    return FakeHost(
        model="anthropic:claude-sonnet-4-6",
        servers=(
            fake.server("filesystem", tools=14),
            fake.server("github", ServerState.CONNECTING, tools=0),
            fake.server("weather", ServerState.FAILED, tools=0, fault=fake.fault()),
        ),
        tools=(fake.tool(), fake.tool("edit_file", description="Edits [bold]a file")),
        models=tuple(
            ModelInfo(id=f"anthropic:claude-{name}", name=name, window=200_000)
            for name in ("sonnet-4-6", "opus-4-6", "haiku-4-5")
        ),
        sessions=tuple(
            SessionInfo(
                id=f"s{index}", title=f"fix the flaky test {index}", workspace=fake.WORKSPACE,
                model="anthropic:claude-sonnet-4-6", started=now, changed=now - 4000 * index,
                messages=12 * index, size=1000,
            )
            for index in range(1, 5)
        ),
        history=("an earlier prompt", "run the tests"),
        logs={"weather": ("Error: no API_KEY", "    at main.js:3 \x1b[31mred\x1b[0m")},
        on_send=scene.on_send,
        closing=2.5 if scene.name == "slow-close" else 0.0,
    )  # fmt: skip


def main() -> int:
    log_file = Path(sys.argv[1])
    scene = Scene(sys.argv[2] if len(sys.argv) > 2 else "chat")
    app = KageApp(
        lambda: make_host(scene),
        keys={},
        theme=os.environ.get("KAGE_DEMO_THEME", ""),
        workspace=fake.WORKSPACE,
    )
    return run(app, log_file=log_file)


if __name__ == "__main__":
    sys.exit(main())
