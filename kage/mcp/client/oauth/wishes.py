"""What the configuration says about a sign-in, laid over what the server says.

Imports the SDK: import it late.
"""

from __future__ import annotations

from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import issuers_match, union_scopes

from kage.config.schema import OAuthSpec
from kage.core.sanitise import clip
from kage.mcp.client.oauth.problems import Refused

_SECRET_METHODS = ("client_secret_basic", "client_secret_post")


class Wishes:
    """What the configuration says about a sign-in, laid over what the server says."""

    def __init__(self, oauth: OAuthSpec, extra: tuple[str, ...]) -> None:
        self.issuer = oauth.issuer
        self.scopes = " ".join(dict.fromkeys((*oauth.scopes, *extra)))
        self.explicit = bool(oauth.scopes)
        self.without_scopes = False  # the server did not know one it named itself
        self.more = False  # the refusal was about scopes

    def choose(self, advertised: list[str]) -> str:
        """Take the issuer of the configuration, or the first one the server names."""
        if not self.issuer:
            return advertised[0]
        for found in advertised:
            if issuers_match(found, self.issuer):
                return found
        named = clip(", ".join(advertised[:3]), 200)
        raise Refused(f"it signs in at {named}, the configuration says issuer {self.issuer}")

    def settle(self, context: OAuthContext) -> None:
        """Decide scopes and how the client proves itself, now that the metadata is known."""
        metadata, client = context.oauth_metadata, context.client_info
        if self.issuer and not (metadata and issuers_match(str(metadata.issuer), self.issuer)):
            raise Refused(f"it has no sign-in at {self.issuer}, which the configuration names")
        named = context.client_metadata.scope
        if self.without_scopes:
            context.client_metadata.scope = None
        elif self.explicit and not self.more:
            context.client_metadata.scope = self.scopes
        else:
            context.client_metadata.scope = union_scopes(named, self.scopes or None)
        if client is not None and client.client_secret and not client.token_endpoint_auth_method:
            known = metadata.token_endpoint_auth_methods_supported if metadata else None
            fitting = [method for method in known or () if method in _SECRET_METHODS]
            client.token_endpoint_auth_method = (fitting or _SECRET_METHODS)[0]
