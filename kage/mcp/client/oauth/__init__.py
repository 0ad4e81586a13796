"""Signing in to HTTP servers: find where, keep what comes of it, renew it, ask a person."""
