"""Addresses of calque's own machine and its neighbours, to which no wildcard and no table's parameter leads calque."""

from __future__ import annotations

import ipaddress
import re

NEAR_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")
NUMERIC = re.compile(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+))*\.?", re.IGNORECASE)
"""Texts that resolvers take for an IPv4 address, such as `127.1` and `0x7f000001`."""


def is_near(host: str) -> bool:
    """Tell whether the host is calque's own machine, or an address that only neighbours have (link-local, unspecified,
    multicast). A text that looks like a number and is no plain address counts as near."""
    host = host.strip("[]").lower().rstrip(".")
    if host in NEAR_NAMES or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return not host or bool(NUMERIC.fullmatch(host))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast
