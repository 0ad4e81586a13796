"""What servers offer beside tools, as the engine uses it for the person: acts and attachments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kage.agent import listing, prompts
from kage.agent.byhand import COMPLETE, GET, READ, Judge, act, by_hand
from kage.agent.mentions import Attacher
from kage.agent.results import PER_TOKEN, Desk, heavy, shown
from kage.agent.source import OfferSource
from kage.core.content import Content, Text
from kage.core.errors import KageError, ToolError
from kage.core.events import Noticed, Publish
from kage.core.gate import CallRequest, Decision
from kage.core.ids import new_id
from kage.core.levels import Level
from kage.core.messages import Outcome, UserMessage
from kage.core.offers import CompletionWish, FilledPrompt, Offers, PromptMessage, RefKind
from kage.core.redact import Redactor
from kage.core.tools import Invocation, Tool, ToolResult
from kage.sessions.artifacts import Artifacts

if TYPE_CHECKING:
    from kage.agent.conversation import Conversation
    from kage.agent.parts import Parts


class Desktop(Protocol):
    """The open session, as far as it is needed here."""

    @property
    def judge(self) -> Judge:
        """Its gate."""
        ...

    @property
    def desk(self) -> Desk:
        """What results are prepared with."""
        ...


class Using:
    """Reads, fills in and attaches for the person, through the gate and within the limits.

    Args:
        source: The servers.
        session: The open session.
        tools: Gives the tools there are now; ``read`` and ``ls`` open files.
        workspace: The folder mentions of files are about.
        publish: Told what could not be attached.
        watching: Whether somebody is there to be told of changes.
    """

    def __init__(
        self,
        source: OfferSource,
        session: Desktop,
        *,
        tools: Callable[[], Mapping[str, Tool]],
        workspace: Path,
        publish: Publish,
        watching: bool,
    ) -> None:
        self._source = source
        self._session = session
        self._tools = tools
        self._workspace = workspace
        self._publish = publish
        self._watching = watching

    def listed(self) -> tuple[Offers, ...]:
        """Give what servers offer, those that have something."""
        return self._source.offered()

    async def files(self) -> tuple[str, ...]:
        """Give the files of the workspace, without what git ignores; not all of a huge one."""
        return await asyncio.to_thread(listing.listed, self._workspace)

    async def complete(self, wish: CompletionWish) -> tuple[str, ...]:
        """Ask for values of an argument; () when the server has none or does not answer.

        A server learns what is typed here, so one that is denied is not asked.
        """
        try:
            if self._off_limits(wish):
                return ()
            return await self._source.complete(wish)
        except KageError:
            return ()  # typing goes on without

    async def read(self, server: str, uri: str) -> tuple[Content, ...]:
        """Read a resource, ready for the model.

        Raises:
            KageError: a rule forbids it, or it could not be had.
        """
        request = self._request(server, READ, {"uri": uri})

        async def work(_: Decision) -> tuple[Content, ...]:
            return await self._source.read_resource(server, uri)

        found = await by_hand(self._session.judge, request, work, content=lambda parts: parts)
        return await self._ready(request, found)

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> FilledPrompt:
        """Have a prompt filled in, ready for the model.

        Raises:
            KageError: a rule forbids it, or it could not be had.
        """
        request = self._request(server, GET, {"name": name, "arguments": dict(arguments)})

        async def work(_: Decision) -> FilledPrompt:
            return await self._source.get_prompt(server, name, arguments)

        filled = await by_hand(self._session.judge, request, work, content=prompts.content)
        messages = [
            PromptMessage(role=item.role, content=await self._ready(request, item.content))
            for item in filled.messages
        ]
        return FilledPrompt(
            server=server,
            name=name,
            messages=tuple(messages),
            description=self._session.desk.redact(filled.description),
        )

    async def expand(self, message: UserMessage) -> UserMessage:
        """Give a typed message with what it names: a prompt's text, and what it mentions.

        Only the first part is the person's own words; a part behind it (what was piped in) and
        what a server says are data, in which a mention names nothing.

        Raises:
            KageError: it is a prompt of a server and could not be had.
        """
        head, *rest = message.content or (Text(""),)
        if not isinstance(head, Text):
            return message
        line = prompts.written(head.text, self._source.names())
        if line is not None:
            parts = await self._filled(line)
            return UserMessage(id=message.id, content=(*parts, *rest), written=head.text)
        attached, done = await self._attacher().attach(head.text)
        if self._watching:
            for item in done:
                if item.server:
                    self._source.watch(item.server, item.uri)
        return UserMessage(id=message.id, content=(head, *rest, *attached))

    def forget(self) -> None:
        """Another conversation is open: nothing of the old one is watched."""
        self._source.unwatch_all()

    # ---- inside

    async def _filled(self, line: prompts.Written) -> tuple[Content, ...]:
        offers = {held.server: held for held in self.listed()}
        offer = prompts.lookup(offers, line)
        words = prompts.split(line.rest, offer)
        name = f"/{line.server}:{line.name}"
        arguments = prompts.arguments(words, offer, name=name)
        return prompts.content(await self.prompt(line.server, line.name, arguments))

    def _attacher(self) -> Attacher:
        listed = {
            held.server: {resource.uri for resource in held.resources} for held in self.listed()
        }

        def is_listed(server: str, uri: str) -> bool:
            return uri in listed.get(server, ())

        return Attacher(
            workspace=self._workspace,
            servers=self._source.names,
            listed=is_listed,
            read=self.read,
            open_=self._open,
            notice=self._publish,
            limit=self._session.desk.limit,
        )

    async def _open(self, path: Path) -> tuple[Content, ...]:
        folder = await asyncio.to_thread(path.is_dir)
        tool = self._tools().get("ls" if folder else "read")
        if tool is None or tool.spec.server is not None:
            raise ToolError("The tool that reads files is switched off")
        request = CallRequest(
            call_id=new_id("c"),
            tool=tool.spec,
            arguments={"path": str(path)},
            workspace=self._workspace,
            by_hand=True,
        )

        async def work(_: Decision) -> ToolResult:
            return await tool.run(
                Invocation(
                    call_id=request.call_id,
                    arguments=request.arguments,
                    workspace=self._workspace,
                    roots=(self._workspace,),
                    scratch=self._session.desk.artifacts.folder,
                )
            )

        result = await by_hand(
            self._session.judge, request, work, content=lambda result: result.content
        )
        if result.outcome is not Outcome.OK:
            raise ToolError("It could not be read")
        return await self._ready(request, result.content)

    async def _ready(
        self, request: CallRequest, content: tuple[Content, ...]
    ) -> tuple[Content, ...]:
        """Redact, keep and cut as it is done with the results of tools."""
        result = ToolResult(content=content)
        if heavy(result):
            message = await asyncio.to_thread(shown, request, result, 0.0, self._session.desk)
        else:
            message = shown(request, result, 0.0, self._session.desk)
        if message.warnings:
            what = f"What {message.server} gave holds {message.warnings[0]}"
            why = "the model is sent it as the server's words"
            self._publish(Noticed(level=Level.WARNING, what=what, why=why))
        return message.content

    def _off_limits(self, wish: CompletionWish) -> bool:
        """Say whether a rule forbids asking, or what the values are wanted for."""
        about = {"argument": wish.argument, "value": wish.value}
        prompt = wish.kind is RefKind.PROMPT
        wanted = (GET, {"name": wish.name}) if prompt else (READ, {"uri": wish.name})
        return any(
            self._session.judge.denies(self._request(wish.server, method, arguments))
            for method, arguments in ((COMPLETE, {"name": wish.name, **about}), wanted)
        )

    def _request(self, server: str, method: str, arguments: Mapping[str, object]) -> CallRequest:
        source = self._source.provenance(server)
        return act(source, method, arguments, workspace=self._workspace)


class OpenSession:
    """Whatever conversation is open: its gate, and where its results go."""

    def __init__(self, conversation: Conversation, *, redact: Redactor, limit: int) -> None:
        self._conversation = conversation
        self._redact = redact
        self._limit = limit

    @property
    def judge(self) -> Judge:
        """The gate."""
        return self._conversation.gate

    @property
    def desk(self) -> Desk:
        """What results are prepared with."""
        artifacts = Artifacts(self._conversation.session.artifacts)
        return Desk(artifacts=artifacts, redact=self._redact, limit=self._limit)


def using(parts: Parts, conversation: Conversation) -> Using:
    """Put together what the engine uses."""
    limit = parts.settings.limits.max_output_tokens * PER_TOKEN
    return Using(
        parts.offers,
        OpenSession(conversation, redact=parts.redact, limit=limit),
        tools=parts.registry.snapshot,
        workspace=parts.workspace,
        publish=parts.bus.publish,
        watching=parts.interactive,
    )
