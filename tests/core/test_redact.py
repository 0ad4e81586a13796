"""A known secret does not reach a sink in any of the promised forms."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from kage.core.redact import MIN_LENGTH, Redactor

SECRET = st.text(st.characters(codec="utf-8"), min_size=8, max_size=60)


def redactor(value: str) -> Redactor:
    redact = Redactor()
    redact.add("TOKEN", value)
    return redact


@given(SECRET, st.text(), st.text())
def test_the_plain_secret_is_gone_whatever_stands_around_it(secret, before, after):
    shown = redactor(secret)(before + secret + after)
    assert "[redacted:TOKEN]" in shown


@given(SECRET)
def test_every_encoded_form_is_replaced(secret):
    redact = redactor(secret)
    raw = secret.encode()
    forms = (
        raw.hex(),
        raw.hex().upper(),
        quote(raw),
        quote(raw, safe=""),
        quote_plus(raw),
        quote(raw, safe="").lower() if secret.islower() else quote(raw, safe=""),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    )
    for form in forms:
        assert "[redacted:TOKEN]" in redact(f"x{form}y"), form


@given(SECRET, st.binary(max_size=5), st.binary(max_size=5))
def test_base64_is_replaced_at_every_alignment(secret, before, after):
    redact = redactor(secret)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert "[redacted:TOKEN]" in redact(encode(before + secret.encode() + after).decode())


def test_a_short_value_would_blank_out_ordinary_words():
    short = "x" * (MIN_LENGTH - 1)
    assert redactor(short)(f"{short} words") == f"{short} words"


def test_the_longer_of_two_secrets_is_replaced_whole():
    redact = Redactor()
    redact.add("SHORT", "abcdef")
    redact.add("LONG", "abcdefghij")
    assert redact("abcdefghij abcdef") == "[redacted:LONG] [redacted:SHORT]"


def test_without_secrets_text_passes():
    assert Redactor()("anything") == "anything"
