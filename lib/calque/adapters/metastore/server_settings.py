"""The configuration of a metastore, as far as it tells it."""

from __future__ import annotations

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.messages import GET_CONFIG_VALUE, Fault

UNSET = ""


def setting(client: Client, name: str) -> str:
    """Return a setting of the server; empty when it is unset or the server does not tell it."""
    try:
        value: str | None = client.call(GET_CONFIG_VALUE, name, UNSET)
    except Fault:
        return ""
    return (value or "").strip()
