"""What `check` looks at on each side: the metastore, its log, its catalog and its storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calque.errors import Refused
from calque.model.hive import Table
from calque.model.names import OURS
from calque.model.policy import Policy
from calque.plugins.grants.ports import Privileges
from calque.ports import Catalog, CatalogReader, EventLog, Storage
from calque.ports.services import MetastoreInfo


@dataclass(frozen=True, slots=True)
class Source:
    """`server` is None for a catalog without a log. `why_not_linked` says why the files of a directory can't be kept by
    links, empty where they can; None where they need not be. `why_not_read` says why nothing is read at a location that
    a definition names; None where it is. `why_no_lifetime` says why it is not known how long marks of a table are kept,
    empty where it is. `scans`: files of some tables are looked for without events."""

    server: MetastoreInfo | None
    log: EventLog
    catalog: CatalogReader
    storage: Storage
    allow_weak_log: bool = False
    why_not_linked: Callable[[str], str] | None = None
    why_no_lifetime: Callable[[Table], str] = lambda _: ""
    shared_storage: bool = False
    why_not_read: Callable[[str], Refused | None] = lambda _: None
    privileges: Privileges | None = None
    scans: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """`write_probe` writes a file below a location and removes it; `scratch` is a table name nobody has."""

    policy: Policy
    server: MetastoreInfo
    catalog: Catalog
    storage: Storage
    write_probe: Callable[[str], None]
    scratch: str = f"{OURS}_probe"
    privileges: Privileges | None = None
    """None where they are not followed."""

    @property
    def where(self) -> str:
        return f"target {self.policy.target}"


def is_hive_4(version: str) -> bool:
    return int(version.partition(".")[0]) >= 4
