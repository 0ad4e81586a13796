"""What becomes of a draft: a prompt, a shell line or a command; and what the palette offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from kage.core.commands import (
    AskPins,
    AskTrust,
    Command,
    EnableServer,
    LoginServer,
    LogoutServer,
    NewSession,
    ReloadConfig,
    RestartServer,
    ResumeSession,
    RunShell,
    SetLogLevel,
    SetMode,
    SetModel,
    SubmitPrompt,
)
from kage.core.content import Text
from kage.core.gate import Mode
from kage.core.levels import Level
from kage.tui.controllers import commands as slash
from kage.tui.controllers.commands import Arg, Typed
from kage.tui.controllers.completion import Known, complete, wanted
from kage.tui.controllers.mentioning import Mentioning
from kage.tui.controllers.prompt_runs import PromptRuns
from kage.tui.controllers.sheets import Stage
from kage.tui.screens.chat import ChatScreen
from kage.tui.status import Status
from kage.tui.text import shown
from kage.tui.widgets.palette import Choice

if TYPE_CHECKING:
    from kage.agent.host import Host


class Prompts:
    """Reads drafts; a draft that cannot be used stays where it is.

    Args:
        chat: The screen with the prompt.
        status: What the screen shows.
        stage: The app.
        act: Does an action by its name, with its argument: models, servers, help, quit.
    """

    def __init__(
        self,
        *,
        chat: ChatScreen,
        status: Status,
        stage: Stage,
        act: Callable[[str, str], None],
    ) -> None:
        self._chat = chat
        self._status = status
        self._stage = stage
        self._do = act
        self._quiet_for = ""  # the draft whose palette was closed by hand
        self._known = Known()
        self._fetching: set[Arg] = set()
        self._mentions = Mentioning(lambda: chat.prompt, stage, self.offer)
        self._runs = PromptRuns(chat=chat, status=status, stage=stage, keymap=chat.keymap)

    def submitted(self, text: str, *, queue: bool) -> None:
        """Do what the draft says; it is taken only when that can be done."""
        choice = self._chat.palette.marked
        wanted = choice is not None and not self._mentions.says(choice) and not self._whole(text)
        if self._chat.palette.display and choice is not None and wanted:
            self._take()
            if not choice.complete or not self._whole(self._chat.prompt.draft):
                return
            text = self._chat.prompt.draft
        if self._runs.is_one(text):
            if self._runs.begin(text, queue=queue):
                self._done(text)
        elif slash.is_command(text):
            if self._command(slash.parse(text)):
                self._done(text)
        elif text.startswith("!") and text[1:].strip():
            self._done(text)
            self._stage.send(RunShell(line=text[1:].strip()))
        elif text.strip() != "!":
            self._done(text)
            self.submit(text, queue=queue)

    def _whole(self, text: str) -> bool:
        """Say whether a command line can be carried out as it stands."""
        return self._runs.is_one(text) or (
            slash.is_command(text) and slash.parse(text).command is not None
        )

    def submit(self, text: str, *, queue: bool = False) -> None:
        """Send ``text`` as a prompt."""
        self._chat.transcript.follow()
        self._stage.send(SubmitPrompt(content=(Text(text),), queue=queue and self._status.running))

    def _done(self, text: str) -> None:
        prompt = self._chat.prompt
        prompt.take()
        prompt.recall.add(text)
        self._chat.palette.offer(())

    # the palette

    def changed(self) -> None:
        """The draft changed: offer what it could become."""
        draft = self._chat.prompt.text
        if draft != self._quiet_for:
            self._quiet_for = ""
        kind = wanted(draft)
        if kind is not None:
            self._fetch(kind)
        self._mentions.changed(draft)
        self.offer()

    def outdated(self) -> None:
        """Servers offer something else than before."""
        self._mentions.outdated()

    def offer(self) -> None:
        """Show the choices for the draft as it is."""
        draft = self._chat.prompt.text
        choices: tuple[Choice, ...] = ()
        if self._quiet_for != draft or not draft:
            choices = (*complete(draft, self._known), *self._mentions.choices(draft))
        self._chat.palette.offer(choices)
        self._chat.prompt.palette_open = bool(choices)

    def pressed(self, action: str) -> None:
        """A key of the palette, or one that means something in an empty prompt, was pressed."""
        palette = self._chat.palette
        match action:
            case "palette_up":
                palette.move(-1)
            case "palette_down":
                palette.move(1)
            case "palette_take":
                self._take()
            case "palette_close":
                self._quiet_for = self._chat.prompt.text
                self.offer()
            case _:
                self._do(action, "")

    def clicked(self, index: int) -> None:
        """An entry was clicked."""
        self._chat.palette.mark(index)
        self._take()
        self._chat.prompt.focus()

    def _take(self) -> None:
        choice = self._chat.palette.marked
        if choice is None:
            return
        if choice.span is None:
            self._chat.prompt.set_draft(choice.insert)
        else:
            self._chat.prompt.put(choice.insert, *choice.span)
        self.offer()

    def _fetch(self, kind: Arg) -> None:
        """Refresh what arguments of this kind are completed from."""
        self._known = replace(self._known, servers=tuple(self._status.servers.values()))
        host = self._stage.host
        if kind in (Arg.MODEL, Arg.SESSION) and kind not in self._fetching and host is not None:
            self._fetching.add(kind)
            self._stage.in_background(self._fetch_slow(kind, host))

    async def _fetch_slow(self, kind: Arg, host: Host) -> None:
        try:
            if kind is Arg.MODEL:
                self._known = replace(self._known, models=await host.models())
            else:
                self._known = replace(self._known, sessions=await host.sessions())
            self.offer()
        finally:
            self._fetching.discard(kind)

    # the commands

    def _command(self, typed: Typed) -> bool:
        """Carry a command out; False when it cannot be, then the draft stays."""
        command = typed.command
        if command is None:
            return self._refuse(slash.suggestion(typed))
        if len(typed.words) > len(command.arguments) + command.more:
            usage = f"/{command.name} {command.usage}".strip()
            return self._refuse(f"/{command.name} takes less: {usage}")
        first = typed.words[0] if typed.words else ""
        match command.name:
            case "model":
                return self._act("models") if not first else self._tell(SetModel(model=first))
            case "mcp":
                return self._servers(typed.words)
            case "permission":
                return self._permission(first)
            case "clear":
                return self._tell(NewSession())
            case "resume":
                return self._act("sessions") if not first else self._resume(first)
            case name:
                return self._act(name)

    def _servers(self, words: tuple[str, ...]) -> bool:  # noqa: PLR0912  # one line per verb
        if not words:
            return self._act("servers")
        names = tuple(self._status.servers)
        if words[-1] in slash.VERBS and words[0] not in slash.VERBS:
            words = (words[-1], words[0])  # "/mcp NAME log"
        verb, name = words[0], words[1] if len(words) > 1 else ""
        if len(words) > 2 and verb != "log":
            return self._refuse(f"/mcp {shown(verb, 30)} takes one name")
        if verb not in slash.VERBS:
            if verb in names and not name:
                return self._act("servers", verb)
            near = slash.nearest(verb, tuple(slash.VERBS))
            hint = f"did you mean /mcp {near}?" if near else f"there are {', '.join(slash.VERBS)}"
            return self._refuse(f"/mcp {shown(verb, 30)} is unknown; {hint}")
        if verb == "trust" and not name:
            return self._tell(AskTrust())
        if verb == "pins" and not name:
            return self._tell(AskPins())
        if verb == "reload" and not name:
            return self._tell(ReloadConfig())
        if not name:
            return self._refuse(
                f"/mcp {verb} needs the name of a server: {shown(', '.join(names))}"
            )
        if name not in names:
            near = slash.nearest(name, names)
            hint = f"Did you mean {near}?" if near else f"There are: {', '.join(names) or 'none'}."
            return self._refuse(f"There is no server {shown(name, 40)}. {shown(hint)}")
        match verb:
            case "restart":
                return self._tell(RestartServer(name=name))
            case "reload":
                return self._tell(RestartServer(name=name, fresh=True))
            case "log" if len(words) > 2:
                return self._log_level(name, words[2].lower())
            case "log":
                return self._act("server_log", name)
            case "trust":
                return self._tell(AskTrust(name=name))
            case "pins":
                return self._tell(AskPins(name=name))
            case "login":
                return self._tell(LoginServer(name=name))
            case "logout":
                return self._tell(LogoutServer(name=name))
            case _:
                return self._tell(EnableServer(name=name, enabled=verb == "enable"))

    def _log_level(self, name: str, word: str) -> bool:
        if word != "off" and word not in slash.LEVELS:
            near = slash.nearest(word, (*slash.LEVELS, "off"))
            hint = f"did you mean {near}?" if near else f"{', '.join(slash.LEVELS)} or off"
            return self._refuse(f"{shown(word, 30)} is no log level; {hint}")
        return self._tell(SetLogLevel(name=name, level="" if word == "off" else word))

    def _permission(self, word: str) -> bool:
        if not word:
            self._chat.prompt.set_draft("/permission ")
            return False
        if word not in tuple(Mode):
            near = slash.nearest(word, tuple(Mode))
            hint = f" Did you mean {near}?" if near else ""
            return self._refuse(f"The modes are default, ask and deny.{hint}")
        if self._status.mode is Mode(word):
            self._chat.prompt.take()  # first: an edit takes remarks away
            self._chat.remark(f"The permission mode is {word} already", topic="chosen")
            return False
        return self._tell(SetMode(mode=Mode(word)))

    def _resume(self, word: str) -> bool:
        matches = [info.id for info in self._known.sessions if info.id.startswith(word)]
        return self._tell(ResumeSession(session_id=matches[0] if len(matches) == 1 else word))

    def _act(self, action: str, argument: str = "") -> bool:
        self._do(action, argument)
        return True

    def _tell(self, command: Command) -> bool:
        self._stage.send(command)
        return True

    def _refuse(self, reason: str) -> bool:
        self._chat.remark(reason, level=Level.WARNING, topic="command")
        return False
