"""A known secret does not reach a sink in any of the promised forms."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from kage.core.redact import MIN_LENGTH, Redactor, Stream

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


@given(
    st.lists(st.text("ab1", min_size=6, max_size=12), min_size=1, max_size=3),
    st.lists(st.text("ab1x…", max_size=12), max_size=12),
)
def test_a_text_in_pieces_comes_out_as_it_would_whole(secrets, pieces):
    redact = Redactor()
    for number, secret in enumerate(secrets):
        redact.add(f"S{number}", secret)
    stream = Stream(redact)
    told = [stream.feed(piece) for piece in pieces]
    assert "".join([*told, stream.flush()]) == redact("".join(pieces))


@given(SECRET, st.integers(1, 7))
def test_no_piece_of_a_stream_shows_the_start_of_a_secret(secret, size):
    for form in (secret, secret.encode().hex(), quote(secret, safe="")):
        redact = redactor(secret)
        stream = Stream(redact)
        whole = f"{form}. "
        told = [stream.feed(whole[at : at + size]) for at in range(0, len(whole), size)]
        assert "".join([*told, stream.flush()]) == redact(whole)


def test_what_cannot_be_a_secret_is_not_held_back():
    stream = Stream(redactor("sk-12345678"))
    assert stream.feed("hello ") == "hello "
    assert stream.feed("sk-1") == ""
    assert stream.feed("x") == "sk-1x"


def test_a_key_of_several_lines_is_known_by_each_of_its_lines():
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w\nabcdefghijklmnopqrst\n-----END KEY-----"
    redact = redactor(key)
    assert redact("log: abcdefghijklmnopqrst") == "log: [redacted:TOKEN]"
    assert redact("-----BEGIN KEY-----") == "-----BEGIN KEY-----"


def test_the_secrets_of_a_text_can_be_named():
    redact = redactor("sk-12345678")
    redact.add("OTHER", "another-one")
    assert redact.names_in("x sk-12345678 " + b"sk-12345678".hex()) == ("TOKEN",)


def test_what_a_cut_left_of_a_secret_is_replaced_too():
    redact = redactor("sk-1234567890abcdef")
    assert redact("key sk-1234567890ab… and sk-12…") == "key [redacted:TOKEN]… and sk-12…"


def test_a_secret_of_other_letters_is_found_in_bytes_read_as_latin_1():
    redact = redactor("pässwörd-ß")
    assert redact("pässwörd-ß".encode().decode("latin-1")) == "[redacted:TOKEN]"


@given(
    st.lists(st.text("ab1", min_size=6, max_size=12), min_size=1, max_size=3),
    st.lists(st.text("ab1x", max_size=12) | st.none(), max_size=12),
)
def test_a_pause_shows_little_and_nothing_twice(secrets, pieces):
    redact = Redactor()
    for number, secret in enumerate(secrets):
        redact.add(f"S{number}", secret)
    stream, told = Stream(redact), []
    for piece in pieces:
        told.append(stream.pause() if piece is None else stream.feed(piece))
    whole = "".join([*told, stream.flush()])
    assert not redact.names_in(whole)
    text = "".join(filter(None, pieces))
    if not redact.names_in(text):
        assert whole == text
    elif None not in pieces:
        assert whole == redact(text)


def test_a_pause_shows_an_ordinary_ending_and_no_long_start_of_a_secret():
    stream = Stream(redactor("sk-12345678"))
    assert stream.feed("Now the tasks") == "Now the task"
    assert (stream.pause(), stream.pause()) == ("s", "")
    assert stream.feed(" are") == " are"
    assert stream.feed(" sk-123456") == " "
    assert stream.pause() == ""
    assert stream.feed("78.") == "[redacted:TOKEN]."
