"""How a message is written as JSON, whatever carries it.

Imports the SDK's types: import it late.
"""

from __future__ import annotations

import json

from mcp.shared.message import SessionMessage


def encoded(item: SessionMessage) -> bytes:
    """Give a message as bytes, in one line without its end.

    Raises:
        ValueError: it holds what JSON has no word for.
    """
    message = item.message
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:  # half a surrogate pair; JSON can spell it as an escape
        plain = message.model_dump(by_alias=True, exclude_unset=True)
        return json.dumps(plain, separators=(",", ":")).encode()
