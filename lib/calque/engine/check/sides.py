"""The parts of each side that `check` looks at: the metastore, its log, its catalog and its storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from calque.engine.check.findings import Findings
from calque.errors import Refused
from calque.model.hive import Table
from calque.model.names import OURS, TableName
from calque.model.policy import Policy
from calque.ports import Catalog, CatalogReader, EventLog, Storage
from calque.ports.services import MetastoreInfo


@dataclass(frozen=True, slots=True)
class Source:
    """A source to be checked. `server` is None for a catalog without a log. `why_not_linked` returns the reason why the
    files of a directory can't be kept by links, empty where they can; it is None where they need not be kept.
    `why_not_read` returns the reason why nothing is read at a location that a definition names; None where it is read.
    `table_looks` are the looks of plugins at the tables that targets take. `scans`: the files of some tables are
    scanned."""

    server: MetastoreInfo | None
    log: EventLog
    catalog: CatalogReader
    storage: Storage
    allow_weak_log: bool = False
    why_not_linked: Callable[[str], str] | None = None
    table_looks: tuple[Callable[[Mapping[TableName, Table], Findings], None], ...] = ()
    shared_storage: bool = False
    why_not_read: Callable[[str], Refused | None] = lambda _: None
    scans: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A target to be checked. `write_probe` writes a file below a location and removes it; `scratch` is a table name
    that no other table has."""

    policy: Policy
    server: MetastoreInfo
    catalog: Catalog
    storage: Storage
    write_probe: Callable[[str], None]
    scratch: str = f"{OURS}_probe"
    looks: tuple[Callable[[Findings], None], ...] = ()
    """The looks of plugins at the target."""
    why_not_native: Callable[[], str] | None = None
    """Returns why the target can't have native replicas of ACID tables, empty where it can; None where its policy asks
    for none."""

    @property
    def where(self) -> str:
        return where_of(self.policy.target)


def where_of(target: str) -> str:
    """Return the text for a target in findings (`Finding.where`)."""
    return f"target {target}"


def answers(version: str) -> str:
    """Return the text for a metastore of that version that answers. Servers before Hive 4 say no exact version."""
    return f"The metastore answers; it is Hive {version}{'' if is_hive_4(version) else ', and does not say which'}"


def is_hive_4(version: str) -> bool:
    return int(version.partition(".")[0]) >= 4
