"""The catalog of a target that is a projection of links."""

from __future__ import annotations

from calque.plugins.remotes.engine.linked_catalog import LinkedCatalog
from calque.plugins.remotes.wiring.missing_links import RecordedLinksInHand
from calque.ports import Catalog
from calque.wiring.kinds import CatalogContext


def linked(catalog: Catalog, context: CatalogContext) -> Catalog:
    """The same of every other target."""
    if context.plug.links is None:
        return catalog
    admission = context.plug.admission()
    return LinkedCatalog(
        catalog,
        context.plug.links,
        lambda name: admission.source_of(name) is not None,
        context.bare_storage.make_directories,
        RecordedLinksInHand(context.folder.control),
    )
