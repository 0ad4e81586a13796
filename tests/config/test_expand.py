"""Variables are put in once, at the start of a server; a missing one stops only that server."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.config.expand import INHERITED, child_environment, expand_server
from kage.config.schema import Place, ServerSpec
from kage.core.errors import ServerError
from tests.config.files import Files

WORK = Path("/work/space")
PLACE = Place(file=Path("/c.toml"), line=7)


def spec(**fields: object) -> ServerSpec:
    return ServerSpec(name="s", place=PLACE, **{"command": "x", **fields})


def test_variables_are_replaced_everywhere() -> None:
    found = expand_server(
        spec(
            command="${BIN}/run",
            args=("${A}-${B:-b}", "$A", "$$", "{A}", ""),
            env={"TOKEN": "t-${A}"},
            cwd="${DIR}",
        ),
        {"BIN": "/bin", "A": "1", "DIR": "sub"},
        workspace=WORK,
    )
    assert found.command == "/bin/run"
    assert found.args == ("1-b", "$A", "$$", "{A}", "")
    assert found.env == {"TOKEN": "t-1"}
    assert found.cwd == WORK / "sub"
    remote = expand_server(
        spec(command="", url="https://${H}/mcp", headers={"Authorization": "Bearer ${T}"}),
        {"H": "host", "T": "token-value"},
        workspace=WORK,
    )
    assert (
        remote.url == "https://host/mcp" and remote.headers["Authorization"] == "Bearer token-value"
    )
    assert ("Authorization token", "token-value") in remote.secrets


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"command": "${NO}"}, "command"),
        ({"args": ("a", "${NO}")}, "args[1]"),
        ({"env": {"K": "${NO}"}}, "env.K"),
        ({"cwd": "${NO}"}, "cwd"),
        ({"command": "", "url": "http://${NO}"}, "url"),
        ({"command": "", "url": "http://h", "headers": {"H": "${NO}"}}, "headers.H"),
    ],
)
@pytest.mark.parametrize("environ", [{}, {"NO": ""}])
def test_a_variable_that_is_not_there_is_named_with_its_key(
    fields: dict[str, object], key: str, environ: dict[str, str]
) -> None:
    with pytest.raises(ServerError) as caught:
        expand_server(spec(**fields), environ, workspace=WORK)
    error = caught.value
    assert (error.server, error.stage) == ("s", "config")
    assert "NO" in error.what and key in error.what and "/c.toml:7" in error.what


@pytest.mark.parametrize(
    "text",
    ["${", "${}", "${A", "${1A}", "${cmd:ls}", "${env:A}", "${A:=b}", "${A:-${B}}", "${A B}"],
)
def test_what_is_no_variable_is_refused_instead_of_sent(text: str) -> None:
    with pytest.raises(ServerError, match="cannot be read"):
        expand_server(spec(args=(text,)), {"A": "", "B": "1"}, workspace=WORK)


def test_a_default_may_be_empty_and_may_hold_almost_anything() -> None:
    found = expand_server(spec(args=("${A:-}", "${A:-a b:-c$d}", "${A:-/x/y}")), {}, workspace=WORK)
    assert found.args == ("", "a b:-c$d", "/x/y")


def test_a_value_is_not_looked_at_again() -> None:
    found = expand_server(spec(args=("${A}",)), {"A": "${B}", "B": "no"}, workspace=WORK)
    assert found.args == ("${B}",)


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b"])
def test_line_breaks_and_nul_in_a_variable_are_refused(value: str) -> None:
    with pytest.raises(ServerError):
        expand_server(spec(env={"K": "${A}"}), {"A": value}, workspace=WORK)


def test_an_address_is_checked_once_it_is_known() -> None:
    remote = spec(command="", url="${U}")
    for bad in ("ftp://h", "h", "http://", "http://h h"):
        with pytest.raises(ServerError, match="url"):
            expand_server(remote, {"U": bad}, workspace=WORK)


def test_relative_places_belong_to_the_project_of_the_file() -> None:
    own = expand_server(spec(command="./run", cwd="sub"), {}, workspace=WORK)
    assert (own.command, own.cwd) == ("/work/space/run", WORK / "sub")
    theirs = spec(command="bin/run", cwd="sub", origin="/other/project")
    found = expand_server(theirs, {}, workspace=WORK)
    assert (found.command, found.cwd) == ("/other/project/bin/run", Path("/other/project/sub"))
    assert expand_server(spec(), {}, workspace=WORK).cwd == WORK
    assert expand_server(spec(command="npx"), {}, workspace=WORK).command == "npx"


def test_values_of_env_and_headers_and_telling_variables_are_secrets() -> None:
    found = expand_server(
        spec(args=("--key=${API_KEY}", "${PROJECT}"), env={"A": "x-${B}"}),
        {"API_KEY": "key-value", "PROJECT": "/home/me", "B": "b-value"},
        workspace=WORK,
    )
    values = {value for _, value in found.secrets}
    assert values == {"key-value", "x-b-value", "b-value"}


@given(
    name=st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True),
    value=st.text(
        st.characters(blacklist_characters="\n\r\0", blacklist_categories=["Cs"]), min_size=1
    ),
    before=st.text("ab$}{ ", max_size=5).filter(
        lambda text: "${" not in text and not text.endswith("$")
    ),
    after=st.text("ab} ", max_size=5),
)
def test_only_the_reference_changes(name: str, value: str, before: str, after: str) -> None:
    found = expand_server(
        spec(args=(f"{before}${{{name}}}{after}",)), {name: value}, workspace=WORK
    )
    assert found.args == (f"{before}{value}{after}",)


def test_a_server_gets_a_small_environment_and_no_model_key() -> None:
    environ = {name: "v" for name in INHERITED} | {
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_API_KEY": "k",
        "LOCAL_KEY": "k",
        "HTTPS_PROXY": "p",
        "OTHER": "o",
        "BASH_FUNC_f%%": "() { :; }",
    }
    assert child_environment(environ, {}, ()) == {name: "v" for name in INHERITED}
    one = child_environment(environ, {"A": "1", "HOME": "h"}, ("HTTPS_PROXY", "NOT_SET"))
    assert one["HTTPS_PROXY"] == "p" and one["A"] == "1" and one["HOME"] == "h"
    assert "OTHER" not in one and "NOT_SET" not in one
    everything = child_environment(environ, {}, ("*",), hidden=("LOCAL_KEY",))
    assert everything["OTHER"] == "o"
    assert everything.keys().isdisjoint(
        {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LOCAL_KEY", "BASH_FUNC_f%%"}
    )


def test_loading_tells_which_variables_hold_model_keys(files: Files) -> None:
    loaded = files.load(
        """
[providers.local]
base_url = "http://h"
api_key_env = "LOCAL_KEY"
[mcp.servers.s]
command = "x"
env_pass = ["*"]
"""
    )
    hidden = loaded.settings.servers["s"].env_hidden
    assert {"LOCAL_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"} <= set(hidden)
