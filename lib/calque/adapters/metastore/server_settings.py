"""What a metastore tells of its configuration."""

from __future__ import annotations

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.messages import GET_CONFIG_VALUE, Fault

UNSET = ""


def setting(client: Client, name: str) -> str:
    """A setting of the server; empty when it is unset or the server does not tell."""
    try:
        value: str | None = client.call(GET_CONFIG_VALUE, name, UNSET)
    except Fault:
        return ""
    return (value or "").strip()
