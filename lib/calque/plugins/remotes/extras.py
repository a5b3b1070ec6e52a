"""The optional packages that links need, by client and route."""

from __future__ import annotations

from functools import partial

from calque.config.extras import Extra
from calque.config.plugs import Config
from calque.plugins.remotes.wiring.polled_catalog import PolledCatalog


def link_via(client: str, config: Config) -> str:
    """Return words for the first source that links reach by that client; an empty text where there is none."""
    for name, source in config.sources.items():
        if isinstance(source.catalog, PolledCatalog) and source.catalog.client.form.name == client:
            return f"The link to {name}"
    return ""


def link_over_ssh(config: Config) -> str:
    return next((f"The link to {name}" for name, source in config.sources.items() if source.route is not None), "")


EXTRAS = (
    Extra(name="ssh", modules=("paramiko",), needed=link_over_ssh),
    Extra(name="glue", modules=("botocore",), needed=partial(link_via, "glue")),
    Extra(name="iceberg", modules=("pyiceberg",), needed=partial(link_via, "iceberg")),
)
