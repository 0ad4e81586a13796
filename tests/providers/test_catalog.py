"""Which model is chosen, what can be chosen, and what never leaks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager, suppress

import pytest

from kage.config.schema import ProviderSpec, Settings
from kage.core.errors import AuthFailed, UnknownModel
from kage.core.usage import Price
from kage.providers import table
from kage.providers.catalog import Models
from kage.providers.endpoints import endpoint_of
from kage.providers.listing import read_listing
from kage.providers.offline import Offline
from tests.llm import ScriptedModel, fail, say
from tests.providers.asking import collect, reply, wants
from tests.waiting import until

HEAVY = ("httpx2", "httpcore2", "pydantic", "mcp", "anyio", "textual", "jsonschema")


def models(*specs: ProviderSpec, model: str = "", ports=None, **environ: str) -> Models:
    named = {spec.name: spec for spec in specs}
    return Models(Settings(model=model, providers=named), environ, local_ports=ports or {})


def chosen(made: Models) -> tuple[str, str]:
    return asyncio.run(made.choose())


def test_importing_the_catalogue_loads_no_http_library():
    code = (
        "import sys, kage.providers.catalog, kage.providers.retry, kage.providers.callsyntax\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_choosing_without_an_endpoint_of_ones_own_loads_no_http_library():
    code = (
        "import asyncio, sys\n"
        "from kage.config.schema import Settings\n"
        "from kage.providers.catalog import Models\n"
        "for environ in ({}, {'OPENAI_API_KEY': 'sk-123456'}):\n"
        "    models = Models(Settings(), environ, local_ports={'ollama': 9})\n"
        "    name, _ = asyncio.run(models.choose())\n"
        "    models.create(name)\n"
        "    print(name, 'httpx2' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[0] == "offline False"
    assert run.stdout.split("\n")[1].endswith(" False")


def test_the_configured_model_comes_first():
    made = models(model="mine:m", ANTHROPIC_API_KEY="sk-ant-1", OPENAI_API_KEY="sk-1")
    assert chosen(made) == ("mine:m", "model in the configuration")


def test_then_the_keys_in_their_order():
    both = models(ANTHROPIC_API_KEY="sk-ant-1", OPENAI_API_KEY="sk-1")
    ident, reason = chosen(both)
    assert ident == f"anthropic:{table.ANTHROPIC_DEFAULT}"
    assert reason == "ANTHROPIC_API_KEY is set"
    assert chosen(models(OPENAI_API_KEY="sk-1"))[0] == f"openai:{table.OPENAI_DEFAULT}"
    assert chosen(models(ANTHROPIC_API_KEY=" "))[0] == "offline"


def test_the_defaults_are_in_the_table():
    assert table.known("anthropic", table.ANTHROPIC_DEFAULT) is not None
    assert table.known("openai", table.OPENAI_DEFAULT) is not None


def test_then_a_server_on_this_machine_in_the_order_of_ports():
    with (
        ScriptedModel(models=["second"]) as second,
        ScriptedModel(models=["nomic-embed-text", "qwen3:8b"]) as first,
    ):
        made = models(ports={"ollama": first.port, "lmstudio": second.port})
        ident, reason = chosen(made)
        assert ident == "ollama:qwen3:8b"
        assert str(first.port) in reason
        assert "Ollama" in reason
        assert made.create(ident).info.price == Price(input=0, output=0)


def test_then_a_configured_provider_and_at_last_offline():
    spec = ProviderSpec(name="mine", kind="openai", base_url="http://127.0.0.1:9/v1", models=("m",))
    assert chosen(models(spec))[0] == "mine:m"
    ident, reason = chosen(models(ports={"ollama": 9}))
    assert ident == "offline"
    assert reason


@asynccontextmanager
async def listening(answer: bytes | None):
    """Serve ``answer`` to whoever connects, None: say nothing and stay open."""
    ended: list[bool] = []

    async def serve(reader, writer):
        ended.append(False)
        if answer is not None:
            await reader.read(100)
            writer.write(answer)
            if b"99999999" not in answer:
                writer.write_eof()
        with suppress(OSError):
            await reader.read(-1)
            writer.close()
            await writer.wait_closed()
        ended.remove(False)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await until(lambda: not ended, what="every connection ends")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\n\r\nnot json",
        b"HTTP/1.0 404 Not Found\r\n\r\n{}",
        b'HTTP/1.0 200 OK\r\n\r\n{"data": null}',
        b'HTTP/1.0 200 OK\r\n\r\n{"data": [{"id": 5}, {}, "x"]}',
        b"SSH-2.0-OpenSSH\r\n",
        b"",
        b"HTTP/1.0 200 OK\r\nContent-Length: 99999999\r\n\r\n{}",
    ],
)
def test_another_program_on_the_port_is_no_model_server(answer):
    async def main():
        async with listening(answer) as port:
            return await models(ports={"llamacpp": port}).choose()

    assert asyncio.run(main())[0] == "offline"


def test_a_silent_server_costs_a_moment_only():
    async def main():
        async with asyncio.timeout(10), listening(None) as port:
            return await models(ports={"a": port, "b": port, "c": port}).choose()

    assert asyncio.run(main())[0] == "offline"


def test_an_address_of_ones_own_is_asked_for_its_models():
    with ScriptedModel(models=["local-model"]) as model:
        for wire in ("anthropic", "openai"):
            ident, _ = chosen(models(**model.environ(wire)))
            assert ident == f"{wire}:local-model"
    with ScriptedModel(models=[table.ANTHROPIC_DEFAULT, "b"]) as model:
        ident, _ = chosen(models(**model.environ("anthropic")))
        assert ident == f"anthropic:{table.ANTHROPIC_DEFAULT}"


def test_a_missing_key_is_told_with_its_variable():
    with pytest.raises(AuthFailed, match="ANTHROPIC_API_KEY"):
        models().create("anthropic:claude-sonnet-5-5")
    spec = ProviderSpec(
        name="router", kind="openai", base_url="https://router.example/v1", api_key_env="ROUTER_KEY"
    )
    with pytest.raises(AuthFailed, match="ROUTER_KEY"):
        models(spec, OPENAI_API_KEY="sk-1").create("router:m")


def test_a_header_may_take_its_value_from_a_variable():
    spec = ProviderSpec(
        name="gate",
        kind="openai",
        base_url="https://gate.example/v1",
        headers={"X-Key": "k ${GATE_KEY}", "X-Team": "${TEAM:-blue}"},
    )
    endpoint = endpoint_of(spec, {"GATE_KEY": "123456789"})
    assert endpoint.headers == {"x-key": "k 123456789", "x-team": "blue"}
    with pytest.raises(AuthFailed, match="GATE_KEY"):
        models(spec).create("gate:m")


def test_a_vendors_key_never_goes_to_another_provider():
    for kind in ("anthropic", "openai"):
        spec = ProviderSpec(name="other", kind=kind, base_url="https://other.example")
        environ = {"ANTHROPIC_API_KEY": "sk-ant-123", "OPENAI_API_KEY": "sk-123456"}
        assert endpoint_of(spec, environ).headers == {}


@pytest.mark.parametrize(
    ("kind", "base", "url"),
    [
        ("anthropic", "https://a.example", "https://a.example/v1"),
        ("anthropic", "https://a.example/v1/", "https://a.example/v1"),
        ("anthropic", "https://a.example/api/anthropic", "https://a.example/api/anthropic/v1"),
        ("anthropic", "https://a.example/v1/messages", "https://a.example/v1"),
        ("openai", "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("openai", "http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1"),
        ("openai", "https://b.example/openai", "https://b.example/openai"),
        ("openai", "https://b.example/v1/chat/completions", "https://b.example/v1"),
    ],
)
def test_an_address_is_taken_in_every_common_spelling(kind, base, url):
    assert endpoint_of(ProviderSpec(name="x", kind=kind, base_url=base), {}).url == url


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("antropic:claude", "anthropic:claude"),
        ("claude-opus-5-5", "anthropic:claude-opus-5-5"),
        ("nothing:x", "offline"),
        ("", "provider:name"),
        (":x", "provider:name"),
    ],
)
def test_an_unknown_provider_is_told_with_the_nearest(model, hint):
    with pytest.raises(UnknownModel) as caught:
        models().create(model)
    assert hint in caught.value.fix


def test_a_provider_alone_means_its_first_model():
    spec = ProviderSpec(
        name="mine", kind="openai", base_url="http://127.0.0.1:9", models=("a", "b")
    )
    assert models(spec).create("mine").info.id == "mine:a"
    with pytest.raises(UnknownModel):
        models(ports={"ollama": 9}).create("ollama")


def test_offline_needs_nothing():
    assert isinstance(models().create("offline"), Offline)


def test_what_the_person_configured_outranks_listing_and_table():
    spec = ProviderSpec(
        name="anthropic",
        kind="anthropic",
        base_url="http://127.0.0.1:9",
        context_window=1000,
        max_tokens=99,
        price_input=1.0,
        price_output=2.0,
    )
    info = models(spec).create("anthropic:claude-opus-5-5").info
    assert (info.window, info.max_output) == (1000, 99)
    assert info.price == Price(input=1.0, output=2.0, cache_read=1.0, cache_write=1.0)


def test_prices_are_unknown_where_kage_does_not_know_them():
    made = models(ANTHROPIC_API_KEY="sk-ant-123")
    assert made.create("anthropic:claude-new-9").info.price is None
    dated = made.create("anthropic:claude-haiku-4-5-20251001").info
    assert dated.price == Price(input=1, output=5, cache_read=0.1, cache_write=1.25)
    spec = ProviderSpec(name="gate", kind="anthropic", base_url="https://gate.example")
    assert models(spec).create("gate:claude-haiku-4-5").info.price is None


def test_what_is_available_is_asked_side_by_side_and_faults_cost_one_endpoint():
    with (
        ScriptedModel(models=[{"id": "big", "context_length": 5000}]) as good,
        ScriptedModel(models=["l"]) as local,
    ):
        specs = [
            ProviderSpec(name="good", kind="openai", base_url=good.openai_url),
            ProviderSpec(name="gone", kind="openai", base_url="http://127.0.0.1:9/v1"),
            ProviderSpec(
                name="named", kind="openai", base_url="http://127.0.0.1:9/v1", models=("n",)
            ),
        ]
        made = models(*specs, ports={"ollama": local.port})
        found = asyncio.run(made.available())
        assert [info.id for info in found] == ["good:big", "named:n", "ollama:l", "offline"]
        assert found[0].window == 5000
        assert made.create("good:big").info.window == 5000


def test_every_secret_is_named_for_the_redactor():
    spec = ProviderSpec(
        name="mine",
        kind="openai",
        base_url="https://x.example",
        api_key_env="MINE",
        headers={"X-Secret": "hidden-value", "X-Title": "kage here", "X-Team": "${TEAM}"},
    )
    made = models(
        spec, TEAM="blue-team", MINE="mine-key", ANTHROPIC_API_KEY="sk-ant-1", OPENAI_API_KEY="sk-1"
    )
    assert set(made.secrets()) == {
        ("MINE", "mine-key"),
        ("mine X-Secret", "hidden-value"),
        ("mine X-Team", "blue-team"),
        ("ANTHROPIC_API_KEY", "sk-ant-1"),
        ("OPENAI_API_KEY", "sk-1"),
    }


@pytest.mark.parametrize(
    "data",
    [
        None,
        5,
        "x",
        [],
        {},
        {"data": {}},
        {"data": [None, {"id": ""}, {"id": "a\nb"}, {"id": "x" * 999}]},
    ],
)
def test_an_odd_listing_is_empty(data):
    assert read_listing("p", data) == ()


def test_a_listing_gives_what_it_says_and_no_more():
    data = {
        "data": [
            {
                "id": "a",
                "context_length": 100,
                "pricing": {"prompt": "0.000001", "completion": "0.000002"},
                "top_provider": {"max_completion_tokens": 50},
                "architecture": {"input_modalities": ["text"]},
            },
            {"id": "models/gemini-x"},
            {"id": "b", "context_length": "many", "pricing": {"prompt": "x", "completion": {}}},
            {"id": "a"},
        ]
    }
    first, second, third = read_listing("p", data)
    assert (first.window, first.max_output, first.images) == (100, 50, False)
    assert first.price == Price(input=1.0, output=2.0, cache_read=1.0, cache_write=1.0)
    assert second.name == "gemini-x"
    assert (third.window, third.price) == (None, None)


def test_a_made_provider_talks_to_its_endpoint():
    with ScriptedModel([fail(529), say("hi")]) as model:
        spec = ProviderSpec(name="mine", kind="openai", base_url=model.base_url)

        async def main():
            provider = models(spec).create("mine:m")
            try:
                with pytest.raises(Exception, match="overloaded"):
                    await collect(provider, wants())
                return await collect(provider, wants())
            finally:
                await provider.close()

        assert reply(asyncio.run(main())).text == "hi"
        assert model.requests[0].path == "/v1/chat/completions"
