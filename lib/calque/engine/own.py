"""The database at a target that is calque's own: hidden builds and the lease are in it."""

from __future__ import annotations

from contextlib import suppress

from calque.core.layout import join
from calque.model.hive import Database
from calque.model.names import OURS
from calque.ports import Catalog, Conflict


def ensure_own_database(catalog: Catalog, warehouse: str) -> None:
    """Make it below the warehouse where it is missing."""
    if catalog.database(OURS) is not None:
        return
    with suppress(Conflict):
        catalog.create_database(Database(OURS, "calque's own: hidden builds and the lease", join(warehouse, OURS), {}))
