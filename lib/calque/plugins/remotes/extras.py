"""What has to be installed for links."""

from __future__ import annotations

from functools import partial

from calque.config.extras import Extra
from calque.config.plugs import Config
from calque.plugins.remotes.wiring.looked_catalog import LookedCatalog


def link_via(client: str, config: Config) -> str:
    """The first source that links reach by that client."""
    for name, source in config.sources.items():
        if isinstance(source.catalog, LookedCatalog) and source.catalog.client.form.name == client:
            return f"The link to {name}"
    return ""


def link_over_ssh(config: Config) -> str:
    return next((f"The link to {name}" for name, source in config.sources.items() if source.route is not None), "")


EXTRAS = (
    Extra(name="ssh", modules=("paramiko",), needed=link_over_ssh),
    Extra(name="glue", modules=("botocore",), needed=partial(link_via, "glue")),
    Extra(name="iceberg", modules=("pyiceberg",), needed=partial(link_via, "iceberg")),
)
