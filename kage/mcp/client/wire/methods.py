"""What the tap knows of single methods: where lists are, and what the SDK is shown instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LISTED: Mapping[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
LISTS: Mapping[str, str] = {  # method: where its entries are
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
STAND_INS: Mapping[str, Mapping[str, Any]] = {
    "tools/call": {"content": [], "isError": False, "resultType": "complete"},
    **{method: {key: [], **_LISTED} for method, key in LISTS.items()},
    "resources/read": {"contents": [], **_LISTED},
    "prompts/get": {"messages": [], "resultType": "complete"},
    "completion/complete": {"completion": {"values": []}, "resultType": "complete"},
}
WHOLE = ("tools/call", "resources/read", "prompts/get", "completion/complete")  # washed in full
OFFERS = (
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
)
