"""Answer what a server asks, whichever era carries the question: forms, pages, model, roots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.canonical import NotCanonical, digest
from kage.core.events import Event, Noticed, Publish
from kage.core.levels import Level
from kage.core.redact import Redactor
from kage.core.requests import Action, Handed, Person, Receipts, Sampler
from kage.mcp.client.asking import elicitation
from kage.mcp.client.asking.requests import INVALID, Unanswerable
from kage.mcp.client.asking.roots import roots_result
from kage.mcp.client.asking.sampling import Sampling, Spent

METHODS = ("elicitation/create", "sampling/createMessage", "roots/list")
MAX_TOLD = 8  # notices about the questions of one connection; more are only counted


def _nothing(event: Event) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Whom and what a manager has to answer servers with; None: nobody, so not declared."""

    person: Person | None = None
    sampler: Sampler | None = None
    receipts: Receipts | None = None
    publish: Publish = _nothing
    workspace: Path = field(default_factory=Path.cwd)
    spent: dict[str, Spent] = field(default_factory=dict)  # of sampling, by server


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, and the call it belongs to."""

    method: str
    params: Mapping[str, Any]
    tool: str = ""  # by its name on the wire; "" when none runs
    decision: str = ""


class Answering:
    """Answers for one connection.

    Args:
        connection: What the follow-ups of its calls are bound to.
        trace: Takes one line per answer.
    """

    def __init__(
        self,
        spec: ServerSpec,
        around: Around,
        *,
        connection: str,
        redactor: Redactor,
        trace: Callable[[str], None],
    ) -> None:
        self._spec = spec
        self.around = around
        self._connection = connection
        self._redactor = redactor
        self._trace = trace
        self._told: set[str] = set()
        self._elicitor = elicitation.Elicitor(
            server=spec.name, person=around.person, redactor=redactor, complain=self.complain
        )
        self._sampling = Sampling(
            spec,
            person=around.person,
            sampler=around.sampler,
            redact=redactor,
            spent=around.spent.setdefault(spec.name, Spent()),
        )

    @property
    def spec(self) -> ServerSpec:
        """The entry it answers by."""
        return self._spec

    @spec.setter
    def spec(self, spec: ServerSpec) -> None:
        self._spec = self._sampling.spec = spec

    @property
    def forms(self) -> bool:
        """Whether elicitation is declared."""
        return self.around.person is not None

    @property
    def sampling(self) -> str:
        """What of sampling is declared: "", "text" or "tools"."""
        return self._sampling.declared

    @property
    def roots(self) -> bool:
        """Whether roots are declared."""
        return self.spec.roots is not None

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """Give the result of one question; the person is asked where it takes one.

        Raises:
            Unanswerable: it is refused, and why.
        """
        match asked.method:
            case "elicitation/create":
                result, by_person = await self._elicitor.answer(asked.params, tool=asked.tool)
                if by_person:
                    content = result.get("content") or {}
                    kind = "url" if asked.params.get("mode") == "url" else "elicitation"
                    await self._hand(asked, kind, str(result["action"]), tuple(content), result)
            case "sampling/createMessage":
                result = await self._sampling.answer(asked.params, tool=asked.tool)
                await self._hand(asked, "sampling", "accept", ("content",), result)
            case "roots/list" if self.spec.roots is not None:
                result = roots_result(self.around.workspace, self.spec.roots)
                await self._hand(asked, "roots", "accept", ("roots",), result)
            case "roots/list":
                raise Unanswerable("its entry says roots = false, so it is told no folders")
            case _:
                raise Unanswerable(f"kage does not know {asked.method[:60]!r}")
        self._trace(f"answered {asked.method}: {result.get('action', 'ok')}")
        return result

    async def seal_round(
        self, asked: Asked, responses: Mapping[str, Any], follow_up: Mapping[str, Any]
    ) -> None:
        """Record the answers of one round as a decision of its own and open its seal.

        Raises:
            Unanswerable: they hold what plain JSON cannot carry.
        """
        await self._hand(asked, "answers", "accept", tuple(responses), follow_up, seal=True)

    async def visit(self, page: Mapping[str, Any], tool: str) -> Action:
        """Put one page of error -32042 to the person.

        Raises:
            BadLink: its address is none to open.
        """
        action = await self._elicitor.visit(page, tool=tool)
        asked = Asked(method="elicitation/create", params=page, tool=tool)
        await self._hand(asked, "url", action.value, (), {"action": action.value})
        return action

    def completed(self, elicitation_id: object) -> None:
        """The server says that what the person did on its page is done."""
        self._elicitor.completed(elicitation_id)

    def complain(self, what: str, why: str, fix: str = "") -> None:
        """Tell the person of a question that was not put to them, a few times."""
        text = f"{what}: {why}"
        self._trace(text)
        if text in self._told or len(self._told) >= MAX_TOLD:
            return
        self._told.add(text)
        self.around.publish(Noticed(level=Level.WARNING, what=what, why=why, fix=fix))

    async def _hand(
        self,
        asked: Asked,
        kind: str,
        action: str,
        keys: tuple[str, ...],
        answer: Mapping[str, Any],
        *,
        seal: bool = False,
    ) -> None:
        try:
            bytes_digest = digest(answer)
        except NotCanonical as error:
            raise Unanswerable(f"the answer cannot be sent: {error}", code=INVALID) from None
        if self.around.receipts is None:
            return
        handed = Handed(
            server=self.spec.name,
            origin=self.spec.origin,
            connection=self._connection,
            tool=asked.tool,
            decision=asked.decision,
            kind=kind,
            action=action,
            by_person=kind != "roots",
            keys=keys,
            digest=bytes_digest,
            sealed=answer if seal else None,
        )
        await self.around.receipts.handed(handed)
