"""What the engine needs of the world, each method with its promise.

Every method may raise `Unavailable` (nothing changed, or it is unknown whether something did: observe again) and
`Refused`. Names are the metastore's own at that side; nothing here knows policies. All calls are safe from several
threads at once.
"""

from calque.ports.clock import Clock
from calque.ports.journal import EventFiles, EvidenceStore, Gaps, Journal, Pins, Scans
from calque.ports.ledger import Ledger
from calque.ports.source import CatalogReader, EventLog
from calque.ports.storage import CombinedRows, CombineTask, CopiedFile, CopyTask, Storage, StorageEntry
from calque.ports.target import Catalog, Conflict, FormatMisfit, Leases, TableCommit, TooLarge

__all__ = [
    "Catalog",
    "CatalogReader",
    "Clock",
    "CombineTask",
    "CombinedRows",
    "Conflict",
    "CopiedFile",
    "CopyTask",
    "EventFiles",
    "EventLog",
    "EvidenceStore",
    "FormatMisfit",
    "Gaps",
    "Journal",
    "Leases",
    "Ledger",
    "Pins",
    "Scans",
    "Storage",
    "StorageEntry",
    "TableCommit",
    "TooLarge",
]
