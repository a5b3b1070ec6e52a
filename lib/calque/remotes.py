"""The interface of a package that adds a client of catalogs: links may lead to such catalogs then.

It names an instance of `RemoteClient` by an entry point of the group `calque.remotes`:

    [project.entry-points."calque.remotes"]
    shelf = "shelf_catalog:CLIENT"
"""

from calque.plugins.remotes.model import ClientForm
from calque.plugins.remotes.ports import RemoteAccess, RemoteCatalog, RemoteClient

__all__ = ["ClientForm", "RemoteAccess", "RemoteCatalog", "RemoteClient"]
