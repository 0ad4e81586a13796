"""A protected MCP server and its authorization server on loopback, made to be bent.

Two HTTP servers in threads: ``OAuthStub`` is a context manager, everything a test bends is an
attribute of it, everything it saw is in ``seen``. As a program it prints the server's address.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

Json = dict[str, Any]


class OAuthStub:
    """Both servers; ``url`` is the MCP server's, ``issuer`` the other's."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Json]] = []  # method, path, form, query or body
        self.headers: list[tuple[str, dict[str, str]]] = []  # path, headers
        self.tokens: dict[str, str] = {}  # access token: scopes
        self.refreshes: dict[str, str] = {}  # refresh token: scopes
        self.clients: dict[str, Json] = {}
        self.codes: dict[str, Json] = {}
        self.assertions: dict[str, Json] = {}  # given by a token exchange, not yet used
        self.scopes: list[str] | None = ["mcp"]
        self.expires_in: object = 3600
        self.give_refresh = True
        self.rotate = True
        self.refresh_again = True  # a refresh gives a refresh token too
        self.refresh_status = 200
        self.refresh_error = "invalid_grant"
        self.refresh_delay = 0.0
        self.scope_error = ""  # "redirect" | "token": refuse any scope with invalid_scope
        self.admin_scope = "admin"  # what the tool "admin" needs
        self.list_scope = ""  # what the list of tools needs
        self.vouched: Json = {}  # laid over the answer to a token exchange
        self.vouch_status = 200
        self.deny = False
        self.with_iss: str | None = "own"  # "own", another one, or None for no iss
        self.state: str | None = None  # what comes back instead of the state
        self.prm: Json = {}  # laid over the protected resource metadata
        self.metadata: Json = {}  # laid over the server metadata; None takes a key away
        self.raw_metadata: Callable[[BaseHTTPRequestHandler], bool] | None = None
        self.resource_metadata = ""  # the address in WWW-Authenticate; "" = the right one
        self.challenge_scope = ""
        self.register_status = 201
        self.secret = False  # registered clients get a secret
        self.open_server = False  # nobody has to sign in
        self.lock = threading.Lock()
        self._authorization = _serve(self, _Authorization)
        self._resource = _serve(self, _Resource)

    @property
    def issuer(self) -> str:
        """The authorization server."""
        return f"http://127.0.0.1:{self._authorization.server_port}"

    @property
    def url(self) -> str:
        """The MCP server."""
        return f"http://127.0.0.1:{self._resource.server_port}/mcp"

    def __enter__(self) -> OAuthStub:
        return self

    def __exit__(self, *exc: object) -> None:
        for server in (self._authorization, self._resource):
            server.shutdown()
            server.server_close()

    def count(self, path: str, **wanted: str) -> int:
        """Count the requests to ``path`` that carry these values."""
        with self.lock:
            return sum(
                seen == path and all(data.get(key) == value for key, value in wanted.items())
                for _, seen, data in self.seen
            )

    def last(self, path: str) -> Json:
        """Give what the last request to ``path`` carried."""
        with self.lock:
            return next(data for _, seen, data in reversed(self.seen) if seen == path)

    def issue(self, scope: str, *, refresh: bool) -> Json:
        """Make tokens."""
        access = f"access-{secrets.token_hex(8)}"
        self.tokens[access] = scope
        answer: Json = {"access_token": access, "token_type": "bearer", "scope": scope}
        if self.expires_in is not None:
            answer["expires_in"] = self.expires_in
        if refresh:
            answer["refresh_token"] = f"refresh-{secrets.token_hex(8)}"
            self.refreshes[answer["refresh_token"]] = scope
        return answer

    def expire(self) -> None:
        """Make every access token void; refresh tokens stay."""
        self.tokens.clear()


def _serve(stub: OAuthStub, handler: type[_Handler]) -> ThreadingHTTPServer:
    bound = type(handler.__name__, (handler,), {"stub": stub})
    server = _Quiet(("127.0.0.1", 0), bound)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    serving.daemon = True
    serving.start()
    return server


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # kage hangs up on answers it refuses


class _Handler(BaseHTTPRequestHandler):
    stub: OAuthStub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def note(self) -> tuple[str, Json]:
        parts = urlsplit(self.path)
        data: Json = {key: values[0] for key, values in parse_qs(parts.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        if "json" in self.headers.get("Content-Type", ""):
            found = json.loads(body or b"{}")
            data |= found if isinstance(found, dict) else {}
        else:
            data |= {key: values[0] for key, values in parse_qs(body.decode()).items()}
        with self.stub.lock:
            self.stub.seen.append((self.command, parts.path, data))
            self.stub.headers.append((parts.path, dict(self.headers.items())))
        return parts.path, data

    def reply(self, status: int, body: Any = None, **headers: str) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if body is not None:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def do_DELETE(self) -> None:
        self.answer()

    def answer(self) -> None:
        raise NotImplementedError


class _Authorization(_Handler):
    def answer(self) -> None:
        path, data = self.note()
        if path.startswith("/.well-known/"):
            self._metadata()
        elif path == "/register":
            self._register(data)
        elif path == "/authorize":
            self._authorize(data)
        elif path == "/token":
            self._token(data)
        elif path == "/revoke":
            with self.stub.lock:
                self.stub.tokens.pop(data.get("token", ""), None)
                self.stub.refreshes.pop(data.get("token", ""), None)
            self.reply(200)
        else:
            self.reply(404)

    def _metadata(self) -> None:
        stub = self.stub
        if stub.raw_metadata is not None and stub.raw_metadata(self):
            return
        known: Json = {
            "issuer": stub.issuer,
            "authorization_endpoint": f"{stub.issuer}/authorize",
            "token_endpoint": f"{stub.issuer}/token",
            "registration_endpoint": f"{stub.issuer}/register",
            "revocation_endpoint": f"{stub.issuer}/revoke",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": stub.with_iss is not None,
            **stub.metadata,
        }
        self.reply(200, {key: value for key, value in known.items() if value is not None})

    def _register(self, data: Json) -> None:
        if self.stub.register_status != 201:
            self.reply(self.stub.register_status, {"error": "invalid_client_metadata"})
            return
        client = {**data, "client_id": f"client-{secrets.token_hex(4)}"}
        if self.stub.secret:
            client["client_secret"] = f"secret-{secrets.token_hex(8)}"
        self.stub.clients[client["client_id"]] = client
        self.reply(201, client)

    def _authorize(self, data: Json) -> None:
        stub = self.stub
        client = stub.clients.get(data.get("client_id", ""), {})
        redirect = data.get("redirect_uri", "")
        if client and redirect not in client.get("redirect_uris", [redirect]):
            self.reply(400, {"error": "redirect_uri is not registered"})
            return
        answer = {"state": data.get("state", "") if stub.state is None else stub.state}
        if stub.with_iss is not None:
            answer["iss"] = stub.issuer if stub.with_iss == "own" else stub.with_iss
        if stub.deny:
            answer |= {"error": "access_denied", "error_description": "the person said no"}
        elif stub.scope_error == "redirect" and data.get("scope"):
            answer |= {"error": "invalid_scope"}
        else:
            code = secrets.token_hex(8)
            stub.codes[code] = data
            answer["code"] = code
        self.reply(302, Location=f"{redirect}?{urlencode(answer)}")

    def _token(self, data: Json) -> None:
        grant = data.get("grant_type")
        if grant == "authorization_code":
            self._code(data)
        elif grant == "refresh_token":
            self._refresh(data)
        elif grant == "client_credentials":
            self.reply(200, self.stub.issue(data.get("scope", ""), refresh=False))
        elif grant == "urn:ietf:params:oauth:grant-type:token-exchange":
            self._vouch(data)
        elif grant == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            good = self.stub.assertions.pop(data.get("assertion", ""), None)
            answer = self.stub.issue(data.get("scope", ""), refresh=False)
            self.reply(200 if good else 400, answer if good else {"error": "invalid_grant"})
        else:
            self.reply(400, {"error": "unsupported_grant_type"})

    def _vouch(self, data: Json) -> None:
        """Be an identity provider: give an assertion that is good once."""
        assertion = f"assertion-{secrets.token_hex(8)}"
        self.stub.assertions[assertion] = data
        kind = "urn:ietf:params:oauth:token-type:id-jag"
        answer = {"access_token": assertion, "issued_token_type": kind, "token_type": "N_A"}
        self.reply(self.stub.vouch_status, {**answer, **self.stub.vouched})

    def _code(self, data: Json) -> None:
        asked = self.stub.codes.pop(data.get("code", ""), None)
        digest = hashlib.sha256(data.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or asked.get("code_challenge") != challenge:
            self.reply(400, {"error": "invalid_grant"})
        elif self.stub.scope_error == "token" and asked.get("scope"):
            self.reply(400, {"error": "invalid_scope"})
        else:
            scope = asked.get("scope", "")
            self.reply(200, self.stub.issue(scope, refresh=self.stub.give_refresh))

    def _refresh(self, data: Json) -> None:
        stub = self.stub
        time.sleep(stub.refresh_delay)
        with stub.lock:
            scope = stub.refreshes.get(data.get("refresh_token", ""))
            if stub.rotate and scope is not None and stub.refresh_status == 200:
                del stub.refreshes[data["refresh_token"]]
        if stub.refresh_status != 200 or scope is None:
            status = stub.refresh_status if stub.refresh_status != 200 else 400
            self.reply(status, {"error": stub.refresh_error})
            return
        self.reply(200, stub.issue(scope, refresh=stub.refresh_again))


class _Resource(_Handler):
    def answer(self) -> None:
        path, data = self.note()
        stub = self.stub
        if path.startswith("/.well-known/oauth-protected-resource"):
            known = {"resource": stub.url, "authorization_servers": [stub.issuer], **stub.prm}
            if stub.scopes is not None:
                known.setdefault("scopes_supported", stub.scopes)
            self.reply(200, known)
        elif path != "/mcp":
            self.reply(404)
        elif not stub.open_server and (scope := self._scope()) is None:
            self._refuse(401, "invalid_token", stub.challenge_scope)
        elif data.get("method") == "tools/call" and not self._reaches(data, scope or ""):
            self._refuse(403, "insufficient_scope", stub.admin_scope)
        elif data.get("method") == "tools/list" and stub.list_scope not in f" {scope} ":
            self._refuse(403, "insufficient_scope", stub.list_scope)
        elif self.command != "POST":
            self.reply(405 if self.command == "GET" else 200)
        elif "id" not in data:
            self.reply(202)
        else:
            self._rpc(data)

    def _scope(self) -> str | None:
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        with self.stub.lock:
            return self.stub.tokens.get(token) if kind == "Bearer" else None

    def _reaches(self, data: Json, scope: str) -> bool:
        tool = (data.get("params") or {}).get("name")
        return tool != "admin" or self.stub.admin_scope in scope.split()

    def _refuse(self, status: int, error: str, scope: str) -> None:
        origin = self.stub.url.removesuffix("/mcp")
        place = self.stub.resource_metadata
        place = place or f"{origin}/.well-known/oauth-protected-resource/mcp"
        header = f'Bearer error="{error}", resource_metadata="{place}"'
        if scope:
            header += f', scope="{scope}"'
        self.reply(status, {"error": error}, WWW_Authenticate=header)

    def _rpc(self, data: Json) -> None:
        method, params = data["method"], data.get("params") or {}
        result: Json
        if method == "initialize":
            result = {
                "protocolVersion": params.get("protocolVersion", "2025-11-25"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }
        elif method == "tools/list":
            schema = {"type": "object"}
            names = ("echo", "admin")
            result = {"tools": [{"name": name, "inputSchema": schema} for name in names]}
        elif method == "tools/call":
            told = json.dumps({"called": params.get("name"), **(params.get("arguments") or {})})
            result = {"content": [{"type": "text", "text": told}]}
        elif method == "ping":
            result = {}
        else:
            error = {"code": -32601, "message": f"no method {method}"}
            self.reply(200, {"jsonrpc": "2.0", "id": data["id"], "error": error})
            return
        self.reply(200, {"jsonrpc": "2.0", "id": data["id"], "result": result})


if __name__ == "__main__":
    with OAuthStub() as stub:
        print(stub.url, flush=True)
        sys.stdin.read()
