"""Names for the shell's completion, from the settings files alone: no process is started."""

from __future__ import annotations

from click import Context, Parameter
from click.shell_completion import CompletionItem

from kage.core.errors import KageError


def complete_server(ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
    """Give the servers whose name begins with ``incomplete``."""
    from kage.cli.ground import Options, ground

    try:
        loaded = ground(Options()).loaded
    except (KageError, OSError):  # a shell's prompt is no place for a mistake in a file
        return []
    specs = {entry.spec.name: entry.spec for entry in loaded.entries}
    return [
        CompletionItem(name, help=spec.url or spec.command)
        for name, spec in specs.items()
        if name.startswith(incomplete)
    ]


def complete_tool(ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
    """Give the tools that begin with ``incomplete``, as far as kage remembers what servers offer.

    Before the name of a server is whole, servers are given.
    """
    from kage.cli.ground import Options, ground
    from kage.mcp.client.servers.identity import identify
    from kage.mcp.client.servers.manifest import Manifests

    server, _, _ = incomplete.partition("__")
    try:
        here = ground(Options())
        spec = here.settings.servers.get(server)
        if spec is None or "__" not in incomplete:
            names = [name for name in here.settings.servers if name.startswith(server)]
            return [CompletionItem(f"{name}__") for name in names]
        identity = identify(spec, here.environ, workspace=here.workspace)
        kept = Manifests(here.paths.cache / "manifests")
        held = kept.load(server, spec.origin, identity.entry_hash)
    except (KageError, OSError):
        return []
    names = [f"{server}__{tool.name}" for tool in held.listing.tools] if held is not None else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
