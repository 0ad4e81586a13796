"""Which proxy of the person's environment leads to an address."""

from __future__ import annotations

from collections.abc import Mapping

_PORTS = {"http": 80, "https": 443}


def proxies_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Give what the environment says about proxies, by scheme, "all" or "no"."""
    lowered = {name.lower(): value for name, value in environ.items() if value}
    return {
        kind: lowered[f"{kind}_proxy"]
        for kind in ("http", "https", "all", "no")
        if f"{kind}_proxy" in lowered
    }


def proxy_for(scheme: str, host: str, port: int | None, proxies: Mapping[str, str]) -> str:
    """Give the address of the proxy to use, "" for none; this machine is reached without one."""
    proxy = proxies.get(scheme) or proxies.get("all", "")
    port = port or _PORTS.get(scheme)
    if not proxy or is_loopback(host) or _is_excepted(host, port, proxies.get("no", "")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    """Say whether ``host`` is this machine."""
    return host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost")


def _is_excepted(host: str, port: int | None, exceptions: str) -> bool:
    """Say whether ``NO_PROXY`` names ``host``, a domain it is in, or everything."""
    for word in exceptions.lower().split(","):
        name, _, wanted = word.strip().partition(":") if word.count(":") == 1 else (word, "", "")
        name = name.strip().removeprefix("*").removeprefix(".")
        if word.strip() == "*":
            return True
        matches = host == name or host.endswith(f".{name}")
        if name and matches and wanted in ("", str(port)):
            return True
    return False
