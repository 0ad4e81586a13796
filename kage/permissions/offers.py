"""The rules "this session" and "always" could save for one call, each no broader than it reads."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

from kage.core.tools import SubjectKind
from kage.permissions.rules import glob
from kage.permissions.rules.places import climbs, escape_argument, normal_url, spelled
from kage.permissions.rules.reading import Reading
from kage.permissions.rules.rule import Rule

MAX_RULE = 300  # characters; a longer rule cannot be read before it is saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A rule a person could save; ``exact`` ones cover this very call and no other.

    ``whole`` is what the rule would say if nothing were cut: what is looked at for secrets.
    """

    rule: Rule
    exact: bool = False
    whole: str = ""


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
            found = [_exactly(reading)] if reading.arguments else []
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


def _exactly(reading: Reading) -> Offer:
    """Offer these very arguments, long ones shortened: what counts is the digest of them all.

    Without it the narrowest rule for a call with a long argument would be its whole tool.
    """
    texts = {name: spelled(value) for name, value in sorted(reading.arguments.items())}
    whole = "\n".join(part for item in texts.items() for part in item)
    for limit in (MAX_RULE, 60, 20):
        shown = {name: _clipped(text, limit) for name, text in texts.items()}
        pattern = ",".join(escape_argument(name, text) for name, text in shown.items())
        offer = Offer(rule=_rule(reading, pattern), exact=True, whole=whole)
        if len(str(offer.rule)) <= MAX_RULE:
            break
    return offer


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


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
