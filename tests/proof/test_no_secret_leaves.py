"""A secret kage knows is in no file, on no screen and in no request, whoever gives it away."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from tests.llm import ScriptedModel, call, say
from tests.proof.house import Ended, House, server

CANARY = "c4nary/+Sec=ret%9xyz~Q"
KEY = "sk-ant-k3y-of-the-c4nary-77"
VALUE = "s3cond+c4nary/in&the?url"
HOWS = ("text", "structured", "error", "rpc", "deep")


def _forms(secret: str) -> Iterator[bytes]:
    raw = secret.encode()
    yield raw
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield quote(secret, safe="").encode()
    for shift in range(3):
        yield base64.b64encode(b"x" * shift + raw)[4:-4]
        yield base64.urlsafe_b64encode(b"x" * shift + raw)[4:-4]


def _clean(where: str, data: bytes) -> None:
    for secret in (CANARY, KEY, VALUE):
        for form in _forms(secret):
            place = data.find(form)
            assert place < 0, f"{where}: …{data[max(0, place - 80) : place + 60]!r}"


def _files(home: Path) -> Iterator[Path]:
    return (file for file in home.rglob("*") if file.is_file() and file.name != "config.toml")


def _model(*, prints: int) -> ScriptedModel:
    """Call everything that leaks, tell the secret in small pieces, and print it by the shell."""
    command = f"echo head {CANARY}; for i in $(seq {prints}); do echo $i '{CANARY}'; done"
    return ScriptedModel(
        [
            [say("Looking. "), *(call("leaks__leak", how=how) for how in HOWS),
             call("far__x", text=CANARY), call("bash", command=command),
             call("read", path="notes.txt"), call("grep", pattern="key")],
            say(f"It is {CANARY}, or {CANARY.encode().hex()}.", chunk=3),
        ]
    )  # fmt: skip


def _prepare(house: House) -> None:
    (house.workspace / "AGENTS.md").write_text(f"Sign in with {CANARY}.\n")
    (house.workspace / "notes.txt").write_text(f"the key is {CANARY}, and {VALUE}\n")
    headers = f'{{ Authorization = "Bearer {VALUE}" }}'
    house.write(
        server("leaks", "leaks", env='{ TOKEN = "${KAGE_TEST_TOKEN}" }', stderr='"log"'),
        server("far", "leaks", url='"http://127.0.0.1:9/mcp"', headers=headers),
        server("dies", "exits", env=f'{{ TOKEN = "{CANARY}" }}', stderr='"log"'),
    )
    house.extra.update(KAGE_TEST_TOKEN=CANARY, KAGE_LOG="*=debug")


def _streamed(ended: Ended) -> bytes:
    """Give the reply as its pieces make it: a secret may be cut by two of them."""
    pieces = [str(event["text"]) for event in ended.of("text_streamed")]
    assert len(pieces) > 1
    return "".join(pieces).encode()


def _requests_clean(model: ScriptedModel) -> None:
    assert model.requests
    for request in model.requests:
        _clean("the model's request", repr(request.body).encode())


def test_a_printed_run_and_every_verb_keep_secrets_to_themselves(house: House) -> None:
    _prepare(house)
    with _model(prints=4_000) as model:
        house.use(model)
        house.extra["ANTHROPIC_API_KEY"] = KEY
        ended = house.kage("-p", f"say {CANARY} @leaks:memo://a", "--json",
                           "--allow", "leaks__*", "--allow", "bash")  # fmt: skip
        assert ended.of("run_finished"), ended.err
        assert "[redacted:" in ended.out
        _clean("stdout", ended.out.encode())
        _clean("the stream of the reply", _streamed(ended))
        _clean("stderr", ended.err.encode())
        _requests_clean(model)
    artifacts = list((house.data / "sessions").glob("*/artifacts/*"))
    assert len(artifacts) >= 2  # the long result and the long output
    for words in (
        ("mcp", "tools", "--json"), ("mcp", "test", "leaks", "--json"), ("mcp", "get", "leaks"),
        ("mcp", "call", "leaks__leak", "how=error"), ("mcp", "call", "leaks__leak", "--json"),
        ("doctor",), ("session", "list"), ("mcp", "list", "--json"),
    ):  # fmt: skip
        shown = house.kage(*words)
        _clean(" ".join(words), (shown.out + shown.err).encode())
    for file in _files(house.home):
        _clean(str(file.relative_to(house.home)), file.read_bytes())


def test_a_chat_on_a_terminal_shows_and_keeps_no_secret(house: House) -> None:
    _prepare(house)
    with _model(prints=50) as model:
        house.use(model)
        house.extra["ANTHROPIC_API_KEY"] = KEY
        with house.terminal("--allow", "leaks__*", "--allow", "bash") as terminal:
            terminal.until("leaks 1")
            terminal.send("tell me all\r")
            terminal.until("It is [redacted:")
            terminal.send("\x14")  # everything unfolded
            terminal.until("50 [redacted:")
            _clean("the screen", terminal.text.encode())
            terminal.send("\x11")
            assert terminal.ended() == 0
            _clean("the terminal", terminal.raw)
        _requests_clean(model)
    for file in _files(house.home):
        _clean(str(file.relative_to(house.home)), file.read_bytes())
