"""Every key of ``[mcp]`` and of a server's entry: its check, and one line of help."""

from __future__ import annotations

from kage.config import values
from kage.config.key import Key
from kage.core.sandbox import LEVELS

TRANSPORTS = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}

# keys that stand in [mcp] as defaults for all servers and in a server's own table
_SHARED = (
    Key(name="tool_timeout", check=values.long_duration, doc="idle time of one call"),
    Key(
        name="tool_max_time",
        check=values.long_duration,
        doc="the most one call may take, progress or not",
    ),
    Key(
        name="health_interval",
        check=values.duration,
        doc="how often an idle server is asked whether it lives; 0 = never",
    ),
    Key(
        name="max_output_tokens",
        check=values.whole(1),
        doc="of one result; the rest goes to a file",
    ),
    Key(
        name="max_parallel_calls",
        check=values.whole(1, 1024),
        doc="calls one server runs at the same time",
    ),
    Key(
        name="max_message_bytes",
        check=values.whole(1024, 1 << 30),
        doc="the longest message a server may send",
    ),
    Key(
        name="sandbox",
        check=values.choice(*LEVELS),
        doc='"none", "workspace" (it writes only there) or "no-network" (nor any network)',
    ),
    Key(
        name="start",
        check=values.choice("eager", "lazy"),
        doc='"eager" starts with kage, "lazy" at the first approved call',
    ),
    Key(
        name="idle_timeout",
        check=values.duration,
        doc='stop a server nobody calls after this long; 0 = never; 5m when start = "lazy"',
    ),
    Key(
        name="safety_level",
        check=values.choice("safe", "moderate", "dangerous"),
        doc="how much the question shows at first; never removes the question",
    ),
    Key(
        name="stderr",
        check=values.choice("inherit", "log", "null"),
        doc='where its stderr goes: "inherit", "log" or "null"',
    ),
    Key(
        name="protocol",
        check=values.choice("auto", "legacy", "2026-07-28"),
        doc='"auto", "legacy" (with a handshake) or "2026-07-28"',
    ),
    Key(
        name="pin",
        check=values.choice("ask", "warn", "off"),
        doc='what a changed tool definition does: "ask" holds it, "warn" tells, "off" is silent',
    ),
    Key(
        name="allow_sampling",
        check=values.sampling,
        doc='whether it may ask the model; "tools": with tools of its own; you see each request',
    ),
    Key(
        name="sampling_max_tokens",
        check=values.whole(0),
        doc="the longest answer it may ask for; 0 = no limit",
    ),
    Key(
        name="sampling_requests",
        check=values.whole(0),
        doc="how often it may ask the model in one session; 0 = no limit",
    ),
    Key(
        name="sampling_budget",
        check=values.whole(0),
        doc="tokens read and written for it in one session; 0 = no limit",
    ),
    Key(
        name="roots",
        check=values.folders,
        doc="folders it is told about besides the workspace; false tells it none",
        sample='["~/notes"]',
    ),
    Key(
        name="log_level",
        check=values.choice(
            "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
        ),
        doc="what it is asked to tell of itself; shown in its log",
        sample='"warning"',
    ),
    Key(
        name="instructions",
        check=values.flag,
        doc="whether the server's instructions reach the model",
    ),
    Key(
        name="output",
        check=None,
        doc='per kind of content "model" or "artifact"',
        sample='{ resource = "artifact" }',
    ),
    Key(
        name="fetch_resource_links",
        check=values.flag,
        doc="whether resources a result points at are read",
    ),
    Key(
        name="max_tools",
        check=values.whole(0),
        doc="the most tools a server may offer; 0 = no limit",
    ),
)

MCP = (
    Key(name="enabled", field="mcp_enabled", check=values.flag, doc="false starts no server"),
    Key(
        name="default_timeout",
        field="timeout",
        check=values.long_duration,
        doc="connecting and listing",
    ),
    *_SHARED,
    Key(
        name="auto_reconnect",
        check=values.flag,
        doc="bring a server back that went away",
        sample="true",
    ),
    Key(
        name="max_reconnect_attempts",
        check=values.whole(0, 1000),
        doc="tries before it counts as failed",
        sample="5",
    ),
    Key(name="restart", aliases=("reconnect",), doc="how a server is brought back"),
    Key(
        name="defer_tools",
        check=values.choice("auto", "always", "never"),
        doc="whether tools are searched instead of listed",
        sample='"auto"',
    ),
    Key(
        name="token_store",
        check=values.choice("file", "keyring"),
        doc='where sign-ins are kept: "file" (mode 0600) or "keyring", the system\'s own',
        sample='"file"',
    ),
    Key(name="servers", doc="the servers by name"),
)

SERVER = (
    Key(name="command", check=values.filled, doc="the program", sample='"npx"'),
    Key(
        name="args",
        check=values.texts,
        doc="its arguments, one text each; no shell reads them",
        sample='["-y", "@modelcontextprotocol/server-filesystem", "${PROJECT:-.}"]',
        secret=True,
    ),
    Key(
        name="cwd",
        check=values.filled,
        doc="the folder it runs in; relative to the workspace, which is the default",
        sample='"."',
    ),
    Key(
        name="env",
        check=values.environment,
        doc="its variables, besides HOME PATH SHELL TERM USER LOGNAME LANG LC_* TMPDIR TZ",
        sample='{ TOKEN = "${FS_TOKEN}" }',
        secret=True,
    ),
    Key(
        name="env_pass",
        check=values.variables,
        doc='names copied from kage\'s own environment; "*" copies all but provider keys',
        sample='["HTTPS_PROXY"]',
    ),
    Key(
        name="sandbox_write",
        check=values.patterns,
        doc="folders it may write to in its sandbox besides the workspace",
        sample='["~/.npm"]',
    ),
    Key(
        name="url",
        check=values.url,
        doc="instead of command: the address of an HTTP server",
        sample='"https://example.invalid/mcp"',
        secret=True,
    ),
    Key(
        name="headers",
        check=values.headers,
        doc="sent with every request to url",
        sample='{ Authorization = "Bearer ${GITHUB_TOKEN}" }',
        secret=True,
    ),
    Key(
        name="headers_command",
        check=values.patterns,
        doc="a program that prints headers; run at connect and again when they are refused",
        sample='["print-token", "--json"]',
        secret=True,
    ),
    Key(
        name="transport",
        check=values.choice(*TRANSPORTS),
        aliases=("type",),
        doc='"stdio", "http" or "sse"; follows from command or url',
    ),
    Key(name="disabled", check=values.flag, doc="configured, but not started"),
    Key(
        name="enabled",
        check=values.flag,
        doc="the same the other way round",
        sample="true",
    ),
    Key(name="required", check=values.flag, doc="kage -p exits 3 when it cannot start"),
    Key(
        name="timeout",
        check=values.long_duration,
        doc="connecting and listing",
    ),
    *_SHARED,
    Key(
        name="tool_timeouts",
        check=values.durations,
        doc="tool_timeout of single tools, by the server's own name for them",
        sample='{ slow = "5m" }',
    ),
    Key(name="enabled_tools", check=values.patterns, doc="tools to offer; * stands for anything"),
    Key(name="disabled_tools", check=values.patterns, doc="tools to leave out"),
    Key(
        name="locked",
        check=values.flag,
        doc="no project, plugin or --mcp-config may replace this entry",
    ),
    Key(
        name="auth",
        check=values.choice("auto", "oauth", "none"),
        doc='how kage signs in to url: "auto", "oauth" or "none"',
    ),
    Key(name="oauth", doc="what signing in to url needs that the server does not say"),
    Key(
        name="sse_fallback",
        check=values.flag,
        aliases=("automaticSSEFallback",),
        doc="try the old SSE transport when url does not speak the new one",
    ),
    Key(
        name="restart",
        aliases=("reconnect",),
        doc="how it is brought back when it went away",
    ),
)

RESTART = (
    Key(name="enabled", check=values.flag, doc="false leaves it failed"),
    Key(name="max_attempts", check=values.whole(0, 1000), doc="tries before it counts as failed"),
    Key(name="delay", check=values.duration, doc="before the first try; doubled each time"),
    Key(name="max_delay", check=values.duration, doc="where the doubling ends"),
    Key(
        name="exclusive",
        check=values.flag,
        doc="stop the old one before starting the new one: it holds a lock or a port",
    ),
)

OAUTH = (
    Key(name="client_id", check=values.filled, doc="a client registered before", sample='"kage"'),
    Key(
        name="client_secret",
        check=values.hidden,
        doc="its secret, if it has one; keep it in a variable",
        sample='"${SIGN_IN_SECRET}"',
        secret=True,
    ),
    Key(
        name="scopes",
        check=values.patterns,
        doc="what to ask for; without it what the server names",
        sample='["read"]',
    ),
    Key(
        name="redirect_port",
        check=values.whole(0, 65535),
        doc="the port of 127.0.0.1 the sign-in comes back to; 0 = any free one",
    ),
    Key(
        name="client_metadata_url",
        check=values.secure_url,
        doc="an https address that describes this client, used instead of registering one",
        sample='"https://example.com/kage.json"',
    ),
    Key(
        name="issuer",
        check=values.url,
        doc="the only authorization server to sign in at",
        sample='"https://login.example.com"',
    ),
    Key(
        name="grant",
        check=values.choice("authorization_code", "client_credentials", "identity_assertion"),
        doc='"authorization_code" asks a person, "client_credentials" is for machines, '
        '"identity_assertion" has an identity provider vouch for you',
    ),
    Key(
        name="private_key",
        check=values.hidden,
        doc="with client_credentials: a PEM key that signs instead of client_secret",
        sample='"${SIGN_IN_KEY}"',
        secret=True,
    ),
    Key(
        name="signing_algorithm",
        check=values.choice("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"),
        doc="what private_key signs with",
    ),
    Key(
        name="idp_token_endpoint",
        check=values.url,
        doc="with identity_assertion: where your identity provider exchanges tokens",
        sample='"https://idp.example.com/token"',
    ),
    Key(
        name="idp_client_id",
        check=values.filled,
        doc="what kage is called there",
        sample='"kage"',
    ),
    Key(
        name="idp_id_token",
        check=values.hidden,
        doc="the ID token it gave you; keep it in a variable",
        sample='"${ID_TOKEN}"',
        secret=True,
    ),
    Key(
        name="idp_id_token_command",
        check=values.patterns,
        doc="instead: a program that prints a fresh one, run whenever it is needed",
        sample='["idp", "print-token"]',
        secret=True,
    ),
)

OUTPUT_KINDS = ("text", "image", "audio", "resource")

OUTPUT = tuple(
    Key(name=kind, check=values.choice("model", "artifact"), doc=f"where {kind} goes")
    for kind in OUTPUT_KINDS
)
