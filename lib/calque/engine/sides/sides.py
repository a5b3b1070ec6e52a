"""What the engine works with: one source side, one target side."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from calque.core.images.image import ImageBuilder
from calque.core.policy.admit import Admission
from calque.engine.sides.announced_exceptions import AnnouncedExceptions
from calque.engine.sides.claim_book import ClaimBook
from calque.engine.sides.copy_progress import CopyProgress
from calque.engine.sides.kept_permissions import KeptPermissions
from calque.engine.sides.origin_names import OriginNaming
from calque.engine.sides.port_wrappers import AttendedStorage, Ending, ends
from calque.engine.sides.read_requests import ReadRequests
from calque.engine.sides.storage_failures import StorageFailures
from calque.engine.sides.waiting_foreign_keys import WaitingForeignKeys
from calque.errors import Refused
from calque.model.bounds import Bounds
from calque.model.hive import Partition, Table
from calque.model.policy import Policy
from calque.ports import (
    Catalog,
    CatalogReader,
    Clock,
    EventFiles,
    EventLog,
    EvidenceStore,
    Gaps,
    Journal,
    Ledger,
    Pins,
    Scans,
    Storage,
    TargetParts,
)
from calque.ports.formats import TableFormat
from calque.ports.forwarding import (
    ForwardingCatalog,
    ForwardingCatalogReader,
    ForwardingEventLog,
    ForwardingStorage,
)


class SystemClock:
    """The machine's own clock."""

    def now_ns(self) -> int:
        return time.time_ns()

    def elapsed_ns(self) -> int:
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class SourceSide:
    """What capture needs, and exact reads."""

    name: str
    log: EventLog
    catalog: CatalogReader
    journal: Journal
    evidence: EvidenceStore
    storage: Storage
    clock: Clock = field(default_factory=SystemClock)
    scans: Scans | None = None
    """None where nothing looks for changes without events."""
    pins: Pins | None = None
    """None where files at the source are not kept."""
    gaps: Gaps | None = None
    """None where the journal is taken to continue the log."""
    event_files: EventFiles | None = None
    """None where directories are listed while the log is captured."""


@dataclass(frozen=True, slots=True)
class TargetSide:
    """One target under its policy."""

    policy: Policy
    catalog: Catalog
    ledger: Ledger
    storage: Storage
    admission: Admission
    imaging: ImageBuilder
    claims: ClaimBook
    """The claims of this process."""
    announced: AnnouncedExceptions = field(default_factory=AnnouncedExceptions)
    read_requests: ReadRequests = field(default_factory=ReadRequests)
    keys: WaitingForeignKeys = field(default_factory=WaitingForeignKeys)
    home: OriginNaming = field(default_factory=OriginNaming)
    copying: CopyProgress = field(default_factory=lambda: CopyProgress(time.time_ns))
    """What the storage's copies report."""
    troubles: StorageFailures = field(default_factory=lambda: StorageFailures(time.monotonic_ns))
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when they are to end, and no call is to be begun."""
    bounds: Bounds = field(default_factory=Bounds)
    """Of what is taken from the source."""
    formats: tuple[TableFormat, ...] = ()
    """Those that the catalog can have tables in."""

    def misfit(self, format_name: str, table: Table, partitions: Iterable[Partition] = ()) -> str:
        """See `TableFormat.misfit`."""
        known = self._format(format_name)
        return known.misfit(table, partitions) if known else f"nothing here has tables in the format {format_name}"

    def log_of(self, format_name: str) -> str:
        """See `TableFormat.log`. Raises `Refused` of a format that nothing here has tables in."""
        known = self._format(format_name)
        if known is None:
            raise Refused(f"Nothing here has tables in the format {format_name}", "", "Install what has, or drop them")
        return known.log

    def _format(self, name: str) -> TableFormat | None:
        return next((one for one in self.formats if one.name == name), None)

    @staticmethod
    def of(
        policy: Policy,
        catalog: Catalog | TargetParts,
        ledger: Ledger,
        storage: Storage,
        stopping: threading.Event | None = None,
        claims: ClaimBook | None = None,
        bounds: Bounds = Bounds(),  # noqa: B008  (it is frozen)
        formats: tuple[TableFormat, ...] = (),
    ) -> TargetSide:
        """`claims` is a new book where none is given."""
        admission, copying, stopping = Admission(policy), CopyProgress(time.time_ns), stopping or threading.Event()
        troubles = StorageFailures(time.monotonic_ns)
        permissions = KeptPermissions(policy.target) if policy.permissions == "keep" else None
        return TargetSide(
            policy,
            ForwardingCatalog(catalog, Ending(stopping)),
            ledger,
            AttendedStorage(storage, copying, troubles, stopping, permissions),
            admission,
            ImageBuilder(admission),
            claims or ClaimBook(ledger, policy.source, policy.target),
            copying=copying,
            troubles=troubles,
            stopping=stopping,
            bounds=bounds,
            formats=formats,
        )


def ending_source(source: SourceSide, stopping: threading.Event) -> SourceSide:
    """The source for one replica: after `stopping` nothing is asked of it, and who waits, waits no longer."""
    ending = Ending(stopping)
    return replace(
        source,
        log=ForwardingEventLog(source.log, ending),
        catalog=ForwardingCatalogReader(source.catalog, ending),
        storage=ForwardingStorage(source.storage, ending),
        clock=_EndingClock(source.clock, stopping),
    )


@dataclass(frozen=True, slots=True)
class _EndingClock:
    clock: Clock
    stopping: threading.Event

    def now_ns(self) -> int:
        return self.clock.now_ns()

    def elapsed_ns(self) -> int:
        return self.clock.elapsed_ns()

    def sleep(self, seconds: float) -> None:
        if self.stopping.is_set():
            raise ends()
        self.clock.sleep(seconds)
