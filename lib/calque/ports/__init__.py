"""What the engine needs of the world, each method with its promise.

Every method may raise `Unavailable` (nothing changed, or it is unknown whether something did: observe again) and
`Refused`. Names are the metastore's own at that side; nothing here knows policies. All calls are safe from several
threads at once.
"""

from calque.ports.clock import Clock
from calque.ports.journal import EvidenceStore, Gaps, Journal, Pins, Scans
from calque.ports.ledger import Ledger
from calque.ports.source import CatalogReader, EventLog
from calque.ports.storage import CopiedFile, CopyTask, Storage, StorageEntry
from calque.ports.target import Catalog, Conflict, Leases, TooLarge

__all__ = [
    "Catalog",
    "CatalogReader",
    "Clock",
    "Conflict",
    "CopiedFile",
    "CopyTask",
    "EventLog",
    "EvidenceStore",
    "Gaps",
    "Journal",
    "Leases",
    "Ledger",
    "Pins",
    "Scans",
    "Storage",
    "StorageEntry",
    "TooLarge",
]
