"""Put environment variables into a server's entry when it starts, and choose its environment.

``${VAR}`` and ``${VAR:-default}`` are replaced, once, in command, args, env, cwd, url and headers;
``$VAR`` without braces stays as it is. A variable that is not set, or is empty, and has no default
is an error of this server: an empty or literal token never goes out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kage.config.providers import PROVIDER_KEYS
from kage.config.schema import OAuthSpec, ServerSpec
from kage.config.values import Wrong, check_url
from kage.core.errors import ServerError

INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
Secrets = tuple[tuple[str, str], ...]  # (name, value), for the redactor

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:-)([^}]*))?\}|(\$\{[^}\n]{0,40}\}?)")
_SECRETIVE = re.compile(r"(?i)token|secret|passw|key|auth|credential")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedServer:
    """One entry, ready to be started or connected to."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: Secrets = ()


def expand_server(
    spec: ServerSpec, environ: Mapping[str, str], *, workspace: Path
) -> ExpandedServer:
    """Replace the variables in ``spec``.

    A relative ``cwd``, and a ``command`` that is a relative path, are taken from the folder of
    the file's project, for the person's own file from the workspace.

    Raises:
        ServerError: stage "config"; names the variable and the key.
    """
    run = _Expansion(spec, environ)
    command = run.text(spec.command, "command")
    args = tuple(run.text(arg, f"args[{index}]") for index, arg in enumerate(spec.args))
    env = {name: run.text(value, f"env.{name}", secret=name) for name, value in spec.env.items()}
    headers = {
        name: run.text(value, f"headers.{name}", secret=name)
        for name, value in spec.headers.items()
    }
    url = run.text(spec.url, "url")
    if url:
        run.check_address(url)
    base = (
        workspace
        if spec.origin == "user" or spec.origin.startswith("plugin:")
        else Path(spec.origin)
    )
    cwd = base / run.text(spec.cwd, "cwd") if spec.cwd else workspace
    if "/" in command and not os.path.isabs(command):
        command = os.path.normpath(base / command)
    return ExpandedServer(
        command=command,
        args=args,
        env=env,
        cwd=cwd,
        url=url,
        headers=headers,
        secrets=tuple(run.secrets.items()),
    )


def expand_oauth(spec: ServerSpec, environ: Mapping[str, str]) -> tuple[OAuthSpec, Secrets]:
    """Replace the variables in what signing in to ``spec`` needs; secrets are for the redactor.

    Raises:
        ServerError: stage "config"; names the variable and the key.
    """
    run = _Expansion(spec, environ)
    oauth = spec.oauth
    secret = run.text(oauth.client_secret, "oauth.client_secret", secret="client_secret")
    private = oauth.private_key
    if private:  # a PEM file has line breaks, which other values may not have
        flat = {name: _one_line(value) for name, value in environ.items()}
        private = _Expansion(spec, flat).text(private, "oauth.private_key").replace("\x1f", "\n")
        run.secrets["private_key"] = private
    expanded = replace(
        oauth,
        client_id=run.text(oauth.client_id, "oauth.client_id"),
        client_secret=secret,
        private_key=private,
        client_metadata_url=run.text(oauth.client_metadata_url, "oauth.client_metadata_url"),
        issuer=run.text(oauth.issuer, "oauth.issuer"),
        idp_token_endpoint=run.text(oauth.idp_token_endpoint, "oauth.idp_token_endpoint"),
        idp_client_id=run.text(oauth.idp_client_id, "oauth.idp_client_id"),
        idp_id_token=run.text(oauth.idp_id_token, "oauth.idp_id_token", secret="idp_id_token"),
    )
    return expanded, tuple(run.secrets.items())


def _one_line(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\n", "\x1f")


def child_environment(
    environ: Mapping[str, str],
    extra: Mapping[str, str],
    passed: Sequence[str],
    *,
    hidden: Collection[str] = PROVIDER_KEYS,
) -> dict[str, str]:
    """Give the whole environment of a server.

    Args:
        environ: kage's own environment, of which ``INHERITED`` reaches every server.
        extra: The entry's expanded ``env``, which beats the rest.
        passed: The entry's ``env_pass``; ``"*"`` means all.
        hidden: Variables that ``passed`` never copies (``providers.key_variables``).
    """
    wanted = environ.keys() if "*" in passed else {*INHERITED, *passed}
    never = {*hidden, *PROVIDER_KEYS}
    child = {
        name: value
        for name, value in environ.items()
        if name in wanted and name not in never and not value.startswith("()")  # shell functions
    }
    child.update(extra)
    return child


class _Expansion:
    def __init__(self, spec: ServerSpec, environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._environ = environ
        self.secrets: dict[str, str] = {}

    def text(self, raw: str, key: str, *, secret: str = "") -> str:
        """Expand ``raw``, the value of ``key``; a value named ``secret`` is remembered."""

        def replace(match: re.Match[str]) -> str:
            variable, default, fallback, odd = match.groups()
            if odd is not None or (fallback is not None and "${" in fallback):
                raise self._error(
                    f"{match[0]} in {key} cannot be read",
                    "${NAME} and ${NAME:-default} are what kage replaces",
                )
            value = self._environ.get(variable, "")
            if value:
                if "\n" in value or "\r" in value:
                    raise self._error(f"the variable {variable} in {key} holds a line break")
                if secret or _SECRETIVE.search(variable):
                    self.secrets.setdefault(variable, value)
                return value
            if default is not None:
                return str(fallback)
            state = "is set but empty" if variable in self._environ else "is not set"
            raise self._error(
                f"the variable {variable} in {key} {state}",
                f"Set it, or write ${{{variable}:-default}}",
            )

        value = _REFERENCE.sub(replace, raw)
        if "\0" in value:
            raise self._error(f"{key} holds a NUL character")
        if secret and value:
            self.secrets[secret] = value
            scheme, _, token = value.partition(" ")
            if token and scheme.lower() in {"bearer", "basic", "token"}:
                self.secrets.setdefault(f"{secret} token", token.strip())
        if raw and not value and key in {"command", "url"}:
            raise self._error(f"{key} is empty")
        return value

    def check_address(self, url: str) -> None:
        try:
            check_url(url)
        except Wrong as wrong:
            raise self._error(f"url {wrong.what}", f"It takes {wrong.expected}") from wrong

    def _error(self, what: str, fix: str = "Mend the variable it uses") -> ServerError:
        place = f" ({self._spec.place})" if self._spec.place else ""
        return ServerError(
            f"{self._spec.name} cannot start: {what}{place}",
            server=self._spec.name,
            stage="config",
            fix=fix,
        )
