"""Parameters that make an object of a metastore a link to another metastore. They are calque's own, and no image has
them."""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "calque.remote."
CONNECTED_TO = f"{PREFIX}connected_to"
OF_CLIENTS = (PREFIX, "hive.metastore.", "ssh.", "aws.", "glue.", "iceberg.", "fs.")
"""Beginnings of settings of clients. Only such settings can be a link's secrets, because a table's own parameter may
have `secret` in its name, too."""


def is_link(parameters: Mapping[str, str] | None) -> bool:
    """Tell whether the parameters of a table or database make it a link, well-formed or not."""
    return CONNECTED_TO in (parameters or {})


def without_link(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters without those of a link, and without settings of clients where there is a link."""
    linked = is_link(parameters)
    return {
        key: value
        for key, value in parameters.items()
        if not key.startswith(PREFIX) and not (linked and key.startswith(OF_CLIENTS))
    }
