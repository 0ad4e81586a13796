"""Bind a ``tools/call`` that is about to be written to the decision that covers its bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kage.core.canonical import NotCanonical, canonical, digest
from kage.core.errors import Refused
from kage.core.gate import Seals
from kage.mcp.client.wire.exchange import FollowUp


def sealed(
    seals: Seals,
    connection: str,
    params: Mapping[str, Any] | None,
    follow: FollowUp | None = None,
) -> tuple[dict[str, Any], str]:
    """Give ``params`` with canonical arguments of their own, and the decision they are bound to.

    What is bound is exactly what is returned: nobody else holds the new arguments.

    Raises:
        Refused: no open decision covers them; nothing may be written.
    """
    frozen = dict(params or {})
    tool = frozen.get("name")
    arguments = frozen.get("arguments")
    if not isinstance(tool, str) or not isinstance(arguments, Mapping | None):
        raise Refused("kage did not send a call it could not read", rule="seal")
    if arguments is not None:
        try:
            arguments = json.loads(canonical(arguments))
        except NotCanonical as error:
            raise Refused(
                "kage did not send the call", rule="seal", why=str(error), fix="Use plain JSON"
            ) from None
        frozen["arguments"] = arguments
    if follow is not None:
        if follow.of.call != (tool, digest(arguments or {})):
            raise _refused("its name or arguments are not those of the call it follows")
        frozen = followed(frozen, follow)
        decision = seals.bind(connection, tool, follow.sealed(arguments))
    else:
        decision = seals.bind(connection, tool, arguments)
    if decision is None:
        raise Refused(
            "kage did not send the call",
            rule="seal",
            why="no open decision covers exactly these arguments",
            fix="Ask for the call again",
        )
    return frozen, decision


def followed(params: Mapping[str, Any] | None, follow: FollowUp) -> dict[str, Any]:
    """Give ``params`` with the answers to what the request before asked back, once.

    Raises:
        Refused: nothing was asked, or the answers are for something else.
    """
    asked = follow.of.result or {}
    if follow.of.followed or asked.get("resultType") != "input_required":
        raise _refused("nothing was asked back that it could answer")
    if asked.get("requestState") != follow.state:
        raise _refused("it carries another state than the one just received")
    questions = asked.get("inputRequests") or {}
    if not set(follow.responses or {}) <= set(questions):
        raise _refused("it answers what was not asked")
    follow.of.followed = True
    return {**(params or {}), **follow.params()}


def _refused(why: str) -> Refused:
    return Refused("kage did not send the follow-up of a call", rule="seal", why=why)
