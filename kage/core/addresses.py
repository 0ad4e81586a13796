"""Tell public internet addresses from all others, whatever they are wrapped in."""

from __future__ import annotations

import ipaddress

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_GLOBAL = ipaddress.IPv6Network("2000::/3")  # the only range given out to the internet
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
_TEREDO = ipaddress.IPv6Network("2001::/32")
_DOCUMENTATION = ipaddress.IPv6Network("3fff::/20")  # newer than Python 3.11's list
_RELAY = ipaddress.IPv4Network("192.88.99.0/24")
_ISATAP = (0x00005EFE, 0x02005EFE)


def is_public(text: str) -> bool:
    """Say whether ``text`` is an address anyone on the internet has; False for what is none."""
    address = _parse(text)
    if address is None:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return _public_v4(address)
    return _public_v6(address)


def is_loopback(text: str) -> bool:
    """Say whether ``text`` is an address of this machine, also wrapped in IPv6."""
    address = _parse(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address is not None and address.is_loopback


def _parse(text: str) -> _Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _public_v4(address: ipaddress.IPv4Address) -> bool:
    special = address.is_multicast or address.is_reserved or address in _RELAY
    return address.is_global and not special


def _public_v6(address: ipaddress.IPv6Address) -> bool:
    number = int(address)
    if address.ipv4_mapped is not None:
        return _public_v4(address.ipv4_mapped)
    if address in _NAT64:  # how an IPv6-only network reaches IPv4 hosts
        return _public_v4(ipaddress.IPv4Address(number & 0xFFFFFFFF))
    if address in _SIX_TO_FOUR or address in _TEREDO or address in _DOCUMENTATION:
        return False
    if number >> 32 & 0xFFFFFFFF in _ISATAP:
        return False
    return address in _GLOBAL and address.is_global and not address.is_multicast
