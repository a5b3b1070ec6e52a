"""A catalog without a log, and the log of the looks at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from calque.plugins.remotes.ports import RemoteAccess, RemoteCatalog, RemoteClient
from calque.ports import CatalogReader, EventLog

if TYPE_CHECKING:
    from calque.plugins.remotes.adapters.polled_log import PolledLog


@dataclass(frozen=True, slots=True)
class PolledCatalog:
    """A catalog without a log as `config.plugs.UnloggedCatalog`. `client` reaches it with `settings`; it is looked at
    every `interval` seconds."""

    client: RemoteClient
    settings: Mapping[str, str]
    access: RemoteAccess
    interval: float

    def connect(self) -> RemoteCatalog:
        """Return the catalog. It makes its first call when it is first used."""
        return self.client.connect(self.settings, self.access)

    def reader(self) -> CatalogReader:
        from calque.plugins.remotes.engine.catalog_as_source import RemoteReader

        return RemoteReader(self.connect())

    def log(self, path: Path) -> PolledLog:
        return open_polled_log(path)

    def log_opener(self, path: Path) -> Callable[[], EventLog]:
        return partial(open_polled_log, path)


def open_polled_log(path: Path) -> PolledLog:
    from calque.plugins.remotes.adapters.polled_log import PolledLog

    return PolledLog(path)
