"""Which addresses are public, and which spellings of a URL are taken."""

from __future__ import annotations

import pytest

from kage.core.addresses import is_loopback, is_public
from kage.core.errors import ToolError
from kage.tools import urls


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101", "2a00:1450::1"]
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.9.9.9", "169.254.169.254"),
        *("172.16.0.1", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1"),
        *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1"),
        *("255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1"),
        *("fd12::1", "ff02::1", "100::1", "2001:db8::1", "2001::1", "2002:7f00:1::", "3fff::1"),
        *("2002:101:101::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
        *("::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::101:101"),
        *("2a00::5efe:7f00:1", "5f00::1", "::ffff:0:127.0.0.1", "not an address", ""),
    ],
)
def test_all_others_are_not(address: str) -> None:
    assert not is_public(address)


def test_this_machine_is_known_in_every_spelling() -> None:
    for address in ("127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"):
        assert is_loopback(address)
    for address in ("1.1.1.1", "::2", "10.0.0.1", "x"):
        assert not is_loopback(address)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://Example.COM", "http://example.com/"),
        ("https://example.com:443/a?b=c#d", "https://example.com/a?b=c"),
        ("http://example.com:8080/ü?q=ü", "http://example.com:8080/%C3%BC?q=%C3%BC"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("http://[2606:4700::1111]:81/", "http://[2606:4700::1111]:81/"),
        ("http://example.com/%2e%2e/a%20b", "http://example.com/%2e%2e/a%20b"),
        ("  http://example.com/  ", "http://example.com/"),
    ],
)
def test_a_url_is_normalised(url: str, expected: str) -> None:
    assert str(urls.parse(url)) == expected


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "ftp://example.com/", "gopher://x/", "data:text/plain,x", "x"),
        *("//example.com/", "", "http://", "http:///x", "http://user@example.com/"),
        *("http://user:pw@example.com/", "http://good.example\\@evil.example/"),
        *("http://example.com/a b", "http://exa\nmple.com/", "http://example.com:0/"),
        *("http://example.com:99999/", "http://example.com:x/", "http://[::1", "http://a\0b/"),
        *("http://\ud800/", "http://example.com/\ud800", "http://" + "a" * 9000),
        *("javascript:alert(1)", "http://exa%6dple.com/", "HTTP+X://x"),
    ],
)
def test_dangerous_spellings_are_refused(url: str) -> None:
    with pytest.raises(ToolError):
        urls.parse(url)


def test_a_redirect_is_checked_like_any_url() -> None:
    base = urls.parse("https://example.com/a/b")
    assert str(urls.join(base, "../c")) == "https://example.com/c"
    assert str(urls.join(base, "//other.example/x")) == "https://other.example/x"
    for location in ("file:///etc/passwd", "http://u:p@x/", "http://[", "\\\\evil"):
        with pytest.raises(ToolError):
            urls.join(base, location)
