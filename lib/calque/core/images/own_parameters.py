"""Parameters by which an object of a metastore is a link to another metastore's: calque's own, on no image."""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "calque.remote."
CONNECTED_TO = f"{PREFIX}connected_to"
OF_CLIENTS = (PREFIX, "hive.metastore.", "ssh.", "aws.", "glue.", "iceberg.", "fs.")
"""How settings of clients begin: what a table has of its own may be called a secret."""


def is_link(parameters: Mapping[str, str] | None) -> bool:
    """Whether the parameters of a table or database make it a link, well-formed or not."""
    return CONNECTED_TO in (parameters or {})


def without_link(parameters: Mapping[str, str]) -> dict[str, str]:
    """What the parameters are but for those of a link: those of an object at a source that is a link itself, too."""
    linked = is_link(parameters)
    return {
        key: value
        for key, value in parameters.items()
        if not key.startswith(PREFIX) and not (linked and key.startswith(OF_CLIENTS))
    }
