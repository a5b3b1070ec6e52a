"""A catalog without a log, and the log that looks at it make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from calque.plugins.remotes.ports import RemoteAccess, RemoteCatalog, RemoteClient
from calque.ports import CatalogReader, EventLog

if TYPE_CHECKING:
    from calque.plugins.remotes.adapters.looks_log import LooksLog


@dataclass(frozen=True, slots=True)
class LookedCatalog:
    """`config.plugs.UnloggedCatalog`, as a client reaches it; it is looked at every `interval` seconds."""

    client: RemoteClient
    settings: Mapping[str, str]
    access: RemoteAccess
    interval: float

    def connect(self) -> RemoteCatalog:
        """Nothing is asked before the catalog is used."""
        return self.client.connect(self.settings, self.access)

    def reader(self) -> CatalogReader:
        from calque.plugins.remotes.engine.catalog_as_source import RemoteReader

        return RemoteReader(self.connect())

    def log(self, path: Path) -> LooksLog:
        return open_looks(path)

    def log_opener(self, path: Path) -> Callable[[], EventLog]:
        return partial(open_looks, path)


def open_looks(path: Path) -> LooksLog:
    from calque.plugins.remotes.adapters.looks_log import LooksLog

    return LooksLog(path)
