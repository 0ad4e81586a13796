"""What a server said when it refused a request: sign in, or ask for more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kage.core.sanitise import clip, visible

_MAX_HEADER = 8192  # characters of WWW-Authenticate looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """A refusal that signing in may mend."""

    status: int  # 401, or 403 for a lack of scopes
    header: str = ""  # WWW-Authenticate as it came
    protocol: str = ""  # MCP revision the refused request was made in

    @classmethod
    def of(cls, status: int, header: str | None, protocol: str = "") -> Challenge | None:
        """Read a refusal; None when the answer is none that signing in would mend."""
        text = (header or "")[:_MAX_HEADER]
        found = cls(status=status, header=text, protocol=protocol)
        lacks = status == 403 and found.field("error") == "insufficient_scope"
        return found if status == 401 or lacks else None

    @property
    def more(self) -> bool:
        """Whether the token is good and only its scopes do not reach."""
        return self.status == 403

    def field(self, name: str) -> str:
        """Give one value of the header, "" when it has none."""
        found = re.search(rf'\b{name}=(?:"([^"]*)"|([^\s,]+))', self.header)
        return (found[1] or found[2] or "") if found else ""

    @property
    def reason(self) -> str:
        """Say it in words a person can act on."""
        said = clip(visible(self.field("error_description"), single_line=True), 200)
        if self.more:
            scope = clip(visible(self.field("scope"), single_line=True), 200)
            text = f"what you allowed does not reach; it asks for: {scope}" if scope else ""
            return text or said or "what you allowed does not reach for this"
        return said or "it answered 401 (not signed in)"

    def headers(self) -> Mapping[str, str]:
        """Give the headers an answer with this refusal has."""
        return {"WWW-Authenticate": self.header} if self.header else {}
