"""The provider without a model: calls the tool a person names, finds tools by words."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Mapping

from kage.core.attachments import typed
from kage.core.content import Content, Text, as_text
from kage.core.messages import (
    AssistantMessage,
    Message,
    Outcome,
    Stop,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from kage.core.tools import ToolSpec
from kage.core.usage import Price
from kage.providers.base import (
    CallDelta,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    TextDelta,
)
from kage.providers.callsyntax import CallSyntaxError, nearest, parse_call, tool_name, usage
from kage.providers.history import CallIds

ID = "offline"
MAX_FOUND = 8  # tools named in one answer

HOW_TO_CONNECT = """\
To connect a model, set ANTHROPIC_API_KEY or OPENAI_API_KEY, start a local server (Ollama, \
llama.cpp, LM Studio), or add a [providers.<name>] table to config.toml; then choose it with \
/model or --model."""

_OUTCOMES = {
    Outcome.TOOL_ERROR: "The call failed:",
    Outcome.REFUSED: "The call was refused:",
    Outcome.NEVER_SENT: "The call was never sent:",
    Outcome.UNKNOWN: "Nobody knows whether the call acted:",
}
_SMALL = frozenset(
    (
        *("a", "an", "and", "are", "can", "do", "for", "from", "how", "i", "in", "is", "it"),
        *("me", "my", "of", "on", "please", "the", "to", "what"),
    )
)


class Offline:
    """Answers without a model, and says so.

    ``markdown`` puts results into code blocks, for a front end that draws Markdown.
    """

    def __init__(self, *, markdown: bool = False) -> None:
        self._markdown = markdown
        free = Price(input=0.0, output=0.0)
        self._info = ModelInfo(id=ID, name="no model", price=free)

    @property
    def info(self) -> ModelInfo:
        """What stands where a model would."""
        return self._info

    async def close(self) -> None:
        """Do nothing; there is no connection."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Turn the newest prompt into a call, or the results of calls into a plain answer."""
        results, message = _newest(request.messages)
        prompt = typed(message.content)
        tools = {spec.name: spec for spec in request.tools}
        call: ToolCall | None = None
        if results:
            text = "\n\n".join(_told(result, fenced=self._markdown) for result in results)
        elif message.written:  # the words are a server's: they call nothing
            text = _shown(message.content, fenced=self._markdown)
        else:
            text, call = _answer(prompt, tools, CallIds(request.messages))
            held = tuple(part for part in message.content if not isinstance(part, Text))
            if call is None and held:
                text = _shown(held, fenced=self._markdown)
        if call is not None:
            yield CallDelta(call_id=call.id, name=call.name, characters=len(prompt))
            stop = Stop.TOOLS
        else:
            yield TextDelta(text)
            stop = Stop.END
        parts = (Text(text),) if call is None else (call,)
        yield Finished(AssistantMessage(id=request.message_id, parts=parts, model=ID, stop=stop))


def _newest(messages: tuple[Message, ...]) -> tuple[list[ToolMessage], UserMessage]:
    """Give the results since the last answer, or else the newest prompt."""
    results: list[ToolMessage] = []
    prompts: list[UserMessage] = []
    for message in reversed(messages):
        match message:
            case ToolMessage():
                results.insert(0, message)
            case UserMessage():
                prompts.insert(0, message)
            case AssistantMessage():
                break
    return ([], prompts[-1]) if prompts else (results, UserMessage(content=()))


def _shown(content: tuple[Content, ...], *, fenced: bool) -> str:
    """Show what a model would read."""
    text = as_text(content).strip("\n") or "(nothing)"
    text = _fenced(text) if fenced else text
    return f"No model is connected. This is what it would read:\n\n{text}"


def _fenced(text: str) -> str:
    fence = "`" * (max((len(run) for run in re.findall("`{3,}", text)), default=2) + 1)
    return f"{fence}\n{text}\n{fence}"


def _told(result: ToolMessage, *, fenced: bool) -> str:
    text = as_text(result.content).strip("\n") or "(no output)"
    if fenced:
        text = _fenced(text)
    head = _OUTCOMES.get(result.outcome)
    return text if head is None else f"{head}\n{text}"


def _answer(
    prompt: str, tools: Mapping[str, ToolSpec], ids: CallIds
) -> tuple[str, ToolCall | None]:
    words = prompt.split()
    if words and tool_name(words[0], tools) is not None:
        try:
            spec, arguments = parse_call(prompt, tools)
        except CallSyntaxError as error:
            if _is_prose(words[1:], error):
                return _search(prompt, tools), None
            return str(error), None
        return "", ToolCall(id=ids.take(None), name=spec.name, arguments=arguments)
    if words and _looks_like_a_tool(words):
        close = nearest(words[0], tools)
        if close:
            shown = "\n".join(f"- `{usage(tools[name])}`" for name in close)
            return f"There is no tool `{words[0]}`. The closest ones:\n\n{shown}", None
    return _search(prompt, tools), None


def _is_prose(words: list[str], error: CallSyntaxError) -> bool:
    """Tell "find me the largest file" from a call of ``find`` with a slip in it."""
    return len(words) > 2 and "no place for" in error.what and not any("=" in w for w in words)


def _looks_like_a_tool(words: list[str]) -> bool:
    return "__" in words[0] or len(words) == 1 or any("=" in word for word in words[1:])


def _search(prompt: str, tools: Mapping[str, ToolSpec]) -> str:
    found = find(prompt, tools.values())
    lines = ["No model is connected, so kage cannot answer in words."]
    if found:
        lines.append("These tools fit what you typed; call one by its name:")
        lines.append("\n".join(f"- `{usage(spec)}`: {_first_line(spec)}" for spec in found))
    elif tools:
        names = sorted(tools)
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        listed = ", ".join(f"`{name}`" for name in names[:20])
        lines.append(f"No tool fits these words. There are: {listed}{more}.")
    else:
        lines.append("There are no tools yet either.")
    if found:
        lines.append("Write `tool key=value`, `key:=JSON`, or the tool and one JSON object.")
    lines.append(HOW_TO_CONNECT)
    return "\n\n".join(lines)


def find(prompt: str, specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Give the tools whose name or description has words of ``prompt``, best first."""
    wanted = {w for w in re.findall(r"[^\W_]+", prompt.lower()) if w not in _SMALL and len(w) > 1}
    scored: list[tuple[float, str, ToolSpec]] = []
    for spec in specs:
        name = set(re.findall(r"[^\W_]+", spec.name.lower()))
        text = set(re.findall(r"[^\W_]+", f"{spec.title} {spec.description[:2000]}".lower()))
        score = sum(_score(word, name) * 3 + _score(word, text) for word in wanted)
        if score:
            scored.append((-score, spec.name, spec))
    return [spec for _, _, spec in sorted(scored, key=lambda item: item[:2])[:MAX_FOUND]]


def _score(word: str, words: set[str]) -> float:
    if word in words:
        return 1.0
    stem = word.rstrip("s")
    return 0.6 if len(stem) > 2 and any(w.startswith(stem) for w in words) else 0.0


def _first_line(spec: ToolSpec) -> str:
    line = " ".join((spec.description or spec.title).split())
    sentence = re.split(r"(?<=[.!?])\s", line, maxsplit=1)[0]
    return sentence if len(sentence) <= 120 else sentence[:119] + "…"
