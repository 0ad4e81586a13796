"""The rules "this session" and "always" could save for one call, each no broader than it reads."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

from kage.core.tools import SubjectKind
from kage.permissions import glob
from kage.permissions.places import climbs, escape_argument, normal_url, spelled
from kage.permissions.reading import Reading
from kage.permissions.rule import Rule

MAX_RULE = 300  # characters; a longer rule cannot be read before it is saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A rule a person could save; ``exact`` ones cover this very call and no other."""

    rule: Rule
    exact: bool = False


def offers(reading: Reading) -> tuple[Offer, ...]:
    """Give what could be saved for the call, narrowest first.

    For a server's tool: exactly these arguments, then the tool. For a shell line: the line and
    nothing else. For a file: the path, then the tool inside the workspace. For an address: it,
    then its site.
    """
    match reading.kind:
        case SubjectKind.COMMAND:
            found = [Offer(rule=_rule(reading, glob.escape(reading.text.strip())), exact=True)]
        case SubjectKind.PATH:
            found = [Offer(rule=_rule(reading, _path(reading)))]
            if not reading.outside:
                found.append(Offer(rule=_rule(reading, "")))
        case SubjectKind.URL:
            found = [Offer(rule=_rule(reading, pattern)) for pattern in _addresses(reading)]
        case SubjectKind.ARGUMENTS:
            pattern = ",".join(
                escape_argument(name, spelled(value))
                for name, value in sorted(reading.arguments.items())
            )
            found = [Offer(rule=_rule(reading, pattern), exact=True)] if pattern else []
            found.append(Offer(rule=_rule(reading, "")))
    return tuple(
        offer
        for offer in found
        if len(str(offer.rule)) <= MAX_RULE
        and (offer.exact or reading.covering([offer.rule.pattern]))
        and not (offer.exact and reading.odd)
    )


def remedy(reading: Reading) -> str:
    """Say how the person allows such a call from the outset, "" when no rule could."""
    found = offers(reading)
    if reading.kind is SubjectKind.ARGUMENTS:
        found = found[-1:]
    for offer in found:
        pattern = offer.rule.pattern
        if reading.covering([pattern]):
            where = (
                f'allow = ["{pattern}"] under [permissions.tools.{offer.rule.tool}]'
                if pattern and '"' not in pattern and "\\" not in pattern and "\n" not in pattern
                else "the rule under [permissions.tools]"
            )
            return (
                f"To allow it, run kage with --allow {shlex.quote(str(offer.rule))}, "
                f"or put {where} in config.toml"
            )
    return ""


def _rule(reading: Reading, pattern: str) -> Rule:
    return Rule(tool=reading.tool.name, pattern=pattern)


def _path(reading: Reading) -> str:
    assert reading.path is not None
    if reading.outside:
        return glob.escape(str(reading.path))
    relative = reading.path.relative_to(reading.workspace)
    text = glob.escape(str(relative))
    return f"./{text}" if text.startswith(("~", "/")) else text


def _addresses(reading: Reading) -> list[str]:
    url = normal_url(reading.text)
    if url is None or climbs(reading.text):
        return []
    parts = urlsplit(url)
    return [glob.escape(url), f"{parts.scheme}://{glob.escape(parts.netloc)}/*"]
