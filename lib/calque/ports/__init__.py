"""The ports: everything that the engine needs of the world, each method with its promise.

Every method may raise `Unavailable` (nothing changed, or it is unknown whether anything did: observe again) and
`Refused`. Names are the metastore's own at that side; nothing here knows policies. All calls are safe from several
threads at once.
"""

from calque.ports.clock import Clock
from calque.ports.journal import Commits, EventFiles, EvidenceStore, Gaps, Journal, Pins, Scans
from calque.ports.ledger import Ledger
from calque.ports.source import CatalogReader, EventLog
from calque.ports.storage import CombinedRows, CombineTask, CopiedFile, CopyTask, Storage, StorageEntry
from calque.ports.target import (
    Catalog,
    Conflict,
    Databases,
    Facets,
    FileGone,
    FormatMisfit,
    Functions,
    Leases,
    Partitions,
    TableCommit,
    Tables,
    TargetParts,
    TooLarge,
    parts_of,
)
from calque.ports.transactions import ReplicatedTransactions, TransactionReader

__all__ = [
    "Catalog",
    "CatalogReader",
    "Clock",
    "CombineTask",
    "CombinedRows",
    "Commits",
    "Conflict",
    "CopiedFile",
    "CopyTask",
    "Databases",
    "EventFiles",
    "EventLog",
    "EvidenceStore",
    "Facets",
    "FileGone",
    "FormatMisfit",
    "Functions",
    "Gaps",
    "Journal",
    "Leases",
    "Ledger",
    "Partitions",
    "Pins",
    "ReplicatedTransactions",
    "Scans",
    "Storage",
    "StorageEntry",
    "TableCommit",
    "Tables",
    "TargetParts",
    "TooLarge",
    "TransactionReader",
    "parts_of",
]
