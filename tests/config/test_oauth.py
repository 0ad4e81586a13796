"""The ``oauth`` table of a server: what it takes, from whom, and how its variables are put in."""

from __future__ import annotations

import pytest

from kage.config.expand import expand_oauth
from kage.config.schema import OAuthSpec
from kage.core.errors import ServerError
from tests.config.files import Files

REMOTE = '[mcp.servers.r]\nurl = "https://r.example/mcp"\n'
PEM = "-----BEGIN KEY-----\nabc\n-----END KEY-----\n"


def test_every_key_reaches_the_entry_and_variables_are_put_in_late(files: Files) -> None:
    loaded = files.load(
        f'[mcp]\ntoken_store = "keyring"\n{REMOTE}auth = "oauth"\n[mcp.servers.r.oauth]\n'
        'client_id = "${ID:-kage}"\nclient_secret = "${SECRET}"\nscopes = ["a", "b"]\n'
        'redirect_port = 4000\nissuer = "https://login.example"\n'
        'client_metadata_url = "https://kage.example/client.json"\n'
    )
    assert loaded.faults == ()
    assert loaded.settings.token_store == "keyring"
    spec = loaded.settings.servers["r"]
    assert spec.auth == "oauth" and spec.oauth.client_secret == "${SECRET}"
    oauth, secrets = expand_oauth(spec, {"SECRET": "very-secret"})
    assert oauth == OAuthSpec(
        client_id="kage",
        client_secret="very-secret",
        scopes=("a", "b"),
        redirect_port=4000,
        issuer="https://login.example",
        client_metadata_url="https://kage.example/client.json",
    )
    assert ("client_secret", "very-secret") in secrets
    with pytest.raises(ServerError, match="SECRET"):
        expand_oauth(spec, {})


def test_a_key_in_a_variable_keeps_its_lines(files: Files) -> None:
    loaded = files.load(
        f'{REMOTE}[mcp.servers.r.oauth]\ngrant = "client_credentials"\nclient_id = "robot"\n'
        'private_key = "${PEM}"\n'
    )
    assert loaded.faults == ()
    oauth, secrets = expand_oauth(loaded.settings.servers["r"], {"PEM": PEM})
    assert oauth.private_key == PEM
    assert ("private_key", PEM) in secrets


VOUCHED = (
    'grant = "identity_assertion"\nclient_id = "x"\nclient_secret = "x"\n'
    'issuer = "https://a.example"\nidp_token_endpoint = "https://b.example/token"\n'
)


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ('client_secret = "x"', "needs client_id"),
        ('grant = "client_credentials"', "needs client_id"),
        ('grant = "client_credentials"\nclient_id = "x"', "needs client_secret"),
        ('grant = "password"', "not known"),
        ('grant = "identity_assertion"\nclient_id = "x"', "needs issuer, client_secret, idp_token"),
        (f'{VOUCHED}idp_client_id = "y"', "needs idp_id_token or idp_id_token_command"),
        (
            f'{VOUCHED}idp_client_id = "y"\nidp_id_token = "z"\nidp_id_token_command = ["w"]',
            "beside",
        ),
        ("redirect_port = 70000", "out of range"),
        ('client_metadata_url = "https://kage.example"', "no such address"),
        ('client_metadata_url = "http://kage.example/x"', "no such address"),
        ('issuer = "file:///x"', "no http address"),
        ('scope = "x"', "not known"),
    ],
)
def test_a_mistake_is_told_and_costs_the_entry(files: Files, lines: str, word: str) -> None:
    loaded = files.load(f"{REMOTE}[mcp.servers.r.oauth]\n{lines}\n")
    assert word in " ".join(str(fault) for fault in loaded.faults)
    assert loaded.settings.servers == {}


def test_a_server_that_is_started_has_nothing_to_sign_in_to(files: Files) -> None:
    loaded = files.load('[mcp.servers.s]\ncommand = "x"\n[mcp.servers.s.oauth]\nclient_id = "x"\n')
    assert "does not fit command" in str(loaded.faults[0])


@pytest.mark.parametrize(
    "line",
    [
        'client_secret = "x"',
        'scopes = ["${HOME}"]',
        'issuer = "https://10.0.0.1"',
        'idp_id_token_command = ["x"]',
    ],
)
def test_a_project_names_no_secret_and_reads_no_variable(files: Files, line: str) -> None:
    head = '[mcp.servers.r.oauth]\nclient_id = "x"\n'
    files.project_toml(f"{REMOTE}{head}{line}\n")
    assert "project file" in str(files.load("").faults[0])
    files.project_toml(REMOTE + head)
    assert files.load("").faults == ()
