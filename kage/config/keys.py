"""Every key kage's settings files know: its check and one line of explanation.

``load`` reads by these tables, ``example`` writes config.toml.example from them; defaults are
those of the dataclasses in ``schema``.
"""

from __future__ import annotations

from kage.config import values
from kage.config.key import Key
from kage.core.sandbox import LEVELS

_WISHES = ("ask", "allow", "deny")

TOP = (
    Key(
        name="model",
        check=values.filled,
        doc='"provider:model", or "offline"; else kage looks for keys, then for local servers',
        sample='"anthropic:claude-sonnet-4-6"',
    ),
    Key(name="theme", check=values.filled, doc="colours of the screen", sample='"textual-dark"'),
    Key(name="providers", doc="model endpoints"),
    Key(name="mcp", doc="MCP servers"),
    Key(name="permissions", doc="what may run"),
    Key(name="limits", doc="what ends a run"),
    Key(name="sandbox", doc="what the agent's shell may touch"),
    Key(name="undo", doc="what is kept to undo calls"),
    Key(name="keys", doc="keys of the screen"),
    Key(name="plugins", doc="Lua plugins"),
)

PROVIDER = (
    Key(
        name="kind",
        check=values.choice("anthropic", "openai"),
        doc='what it speaks: "anthropic" (Messages) or "openai" (Chat Completions)',
        sample='"openai"',
    ),
    Key(
        name="base_url",
        check=values.url,
        doc="its address; without it the vendor's own",
        sample='"http://127.0.0.1:11434/v1"',
    ),
    Key(
        name="api_key_env",
        check=values.variable,
        doc="the variable that holds the key, never the key itself",
        sample='"LOCAL_KEY"',
    ),
    Key(
        name="models",
        check=values.patterns,
        doc="the models it offers; without it the endpoint is asked",
        sample='["qwen3:8b"]',
    ),
    Key(
        name="context_window",
        check=values.whole(0),
        doc="tokens a conversation may have; 0 = as the catalogue knows it",
    ),
    Key(
        name="max_tokens",
        check=values.whole(0),
        doc="tokens of one reply; 0 = as the catalogue knows it",
    ),
    Key(
        name="headers",
        check=values.headers,
        doc="sent with every request",
        sample='{ X-Team = "docs" }',
        secret=True,
    ),
    Key(name="price_input", check=values.amount, doc="US dollars per million tokens read"),
    Key(name="price_output", check=values.amount, doc="US dollars per million tokens written"),
    Key(name="thinking", check=values.whole(0), doc="tokens the model may think; 0 = off"),
)

PERMISSIONS = (
    Key(
        name="mode",
        check=values.choice("default", "ask", "deny"),
        doc='"default", "ask" (every call asks) or "deny" (what would ask is refused)',
    ),
    Key(name="mcp", doc="per server"),
    Key(name="tools", doc="per tool"),
)

WISH = values.choice(*_WISHES)

TOOL_RULES = (
    Key(
        name="deny",
        check=values.patterns,
        doc="calls that are refused",
        sample='["rm -rf *"]',
    ),
    Key(
        name="ask",
        check=values.patterns,
        doc="calls that always ask",
        sample='["git push *"]',
    ),
    Key(
        name="allow",
        check=values.patterns,
        doc="calls that run",
        sample='["git status *"]',
    ),
    Key(name="default", check=WISH, doc="every other call", sample='"ask"'),
)

SANDBOX = (
    Key(
        name="bash",
        check=values.choice(*LEVELS),
        doc='"none", "workspace" (writes only there) or "no-network" (nor any network)',
    ),
    Key(
        name="write",
        check=values.patterns,
        doc="folders the shell may write to besides the workspace",
        sample='["~/.cache/uv"]',
    ),
    Key(
        name="hide",
        check=values.patterns,
        doc="what no sandboxed process may read, besides kage's own folders, ~/.ssh and the like",
        sample='["~/letters"]',
    ),
)

UNDO = (
    Key(
        name="snapshots",
        check=values.flag,
        doc="look at the workspace around bash and MCP calls, to say and undo what they changed",
    ),
    Key(
        name="keep_mb",
        check=values.whole(0, 1 << 20),
        doc="MiB of former file contents kept per session; 0 = nothing can be undone",
    ),
)

LIMITS = (
    Key(name="max_turns", check=values.whole(0), doc="turns of one run; 0 = no limit"),
    Key(name="max_cost", check=values.amount, doc="US dollars of one run; 0 = no limit"),
    Key(
        name="max_output_tokens",
        check=values.whole(1),
        doc="of one built-in tool's result; the rest goes to a file",
    ),
)
