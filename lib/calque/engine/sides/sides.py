"""The objects that the engine works with: one source side and one target side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from calque.core.events.kinds import obstacle
from calque.core.images.image import ImageBuilder
from calque.core.policy.admit import Admission
from calque.engine.sides.announced_exceptions import AnnouncedExceptions
from calque.engine.sides.claim_book import ClaimBook
from calque.engine.sides.copy_progress import CopyProgress
from calque.engine.sides.kept_permissions import KeptPermissions
from calque.engine.sides.origin_names import OriginNameRegistry
from calque.engine.sides.port_wrappers import MonitoredStorage, StopInterceptor, ends
from calque.engine.sides.read_requests import ReadRequests
from calque.engine.sides.storage_failures import StorageFailures
from calque.engine.sides.waiting_foreign_keys import WaitingForeignKeys
from calque.errors import Refused
from calque.model.bounds import Bounds
from calque.model.hive import Partition, Table, is_transactional
from calque.model.names import TableName, table_name
from calque.model.policy import Policy
from calque.ports import (
    Catalog,
    CatalogReader,
    Clock,
    Commits,
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
from calque.ports.transactions import ReplicatedTransactions, TransactionReader


def no_table(_: TableName) -> bool:
    return False


class SystemClock:
    """The clock of the machine."""

    def now_ns(self) -> int:
        return time.time_ns()

    def elapsed_ns(self) -> int:
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class SourceSide:
    """A source: the ports that capture and exact reads need."""

    name: str
    log: EventLog
    catalog: CatalogReader
    journal: Journal
    evidence: EvidenceStore
    storage: Storage
    clock: Clock = field(default_factory=SystemClock)
    scans: Scans | None = None
    """The findings of scans; None where no scan looks for changes without events."""
    pins: Pins | None = None
    """The files that are kept at the source until every target has them; None where none are kept."""
    commits: Commits | None = None
    """The commits of transactions that changed ACID tables; None where no target has such tables."""
    transactions: TransactionReader | None = None
    """The source's transactions; None where `commits` is."""
    natively: Callable[[TableName], bool] = no_table
    """A function that tells which ACID tables the target that follows has as ACID tables, too."""
    gaps: Gaps | None = None
    """The record of gaps in the log; None where the journal is assumed to continue the log."""
    event_files: EventFiles | None = None
    """The files of events, where the source itself tells them, as a dump does; None where evidence comes from listings
    of directories, made while the log is captured."""


@dataclass(frozen=True, slots=True)
class TargetTransactions:
    """The transactions of a target's metastore: `reader` tells which are open, and `writer` makes calque's own."""

    reader: TransactionReader
    writer: ReplicatedTransactions


@dataclass(frozen=True, slots=True)
class TargetSide:
    """One target under its policy: its ports, and what the threads of one process share about it."""

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
    waiting_foreign_keys: WaitingForeignKeys = field(default_factory=WaitingForeignKeys)
    origins: OriginNameRegistry = field(default_factory=OriginNameRegistry)
    copying: CopyProgress = field(default_factory=lambda: CopyProgress(time.time_ns))
    """The progress of copies, to which `storage` reports."""
    storage_failures: StorageFailures = field(default_factory=lambda: StorageFailures(time.monotonic_ns))
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the replica is to end; no call is begun after that."""
    bounds: Bounds = field(default_factory=Bounds)
    """The limits on what is taken from the source."""
    formats: tuple[TableFormat, ...] = ()
    """The formats that the catalog can have tables in."""
    transactions: TargetTransactions | None = None
    """The transactions of the target's metastore; None where it has no ACID tables of calque's."""

    def is_native(self, table: Table) -> bool:
        """Tell whether the table, the source's or its replica, is an ACID table at the target."""
        return is_transactional(table) and self.transactions is not None

    def wanted_format(self, table: Table) -> str:
        """Return the format that the replica of the source's table is to have; empty for the source's own. `acid` of
        the policy speaks of ACID tables, and `format` of all others."""
        name = table_name(table.database, table.name)
        return self.admission.acid_format(name) if is_transactional(table) else self.admission.wanted_format(name)

    def obstacle(self, table: Table) -> str:
        """Say, for people, why the source's table is set aside; empty when it is replicated. An ACID table that can't
        have its format is set aside, because its files alone don't have its rows."""
        name = table_name(table.database, table.name)
        why = obstacle(table, self.admission.acid(name))
        wanted = self.wanted_format(table) if is_transactional(table) and not why else ""
        misfit = self.misfit(wanted, table) if wanted else ""
        return f"{name} can't be a {wanted.title()} table: {misfit}" if misfit else why

    def misfit(self, format_name: str, table: Table, partitions: Iterable[Partition] = ()) -> str:
        """Return the reason why the table does not fit the format `format_name`, empty where it fits: see
        `TableFormat.misfit`."""
        known = self._format(format_name)
        return known.misfit(table, partitions) if known else f"nothing here has tables in the format {format_name}"

    def log_of(self, format_name: str) -> str:
        """Return the name of the format's log: see `TableFormat.log`. Raises `Refused` for a format that is not among
        `formats`."""
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
        transactions: TargetTransactions | None = None,
    ) -> TargetSide:
        """Make a target side of a policy and ports, with guards that end calls after `stopping` is set. Without
        `claims` it gets a new claim book."""
        admission, copying, stopping = Admission(policy), CopyProgress(time.time_ns), stopping or threading.Event()
        storage_failures = StorageFailures(time.monotonic_ns)
        permissions = KeptPermissions(policy.target) if policy.permissions == "keep" else None
        return TargetSide(
            policy,
            ForwardingCatalog(catalog, StopInterceptor(stopping)),
            ledger,
            MonitoredStorage(storage, copying, storage_failures, stopping, permissions),
            admission,
            ImageBuilder(admission),
            claims or ClaimBook(ledger, policy.source, policy.target),
            copying=copying,
            storage_failures=storage_failures,
            stopping=stopping,
            bounds=bounds,
            formats=formats,
            transactions=transactions,
        )


def stoppable_source(source: SourceSide, stopping: threading.Event) -> SourceSide:
    """Return the source for one replica: once `stopping` is set, calls of its log, catalog and storage raise
    `Unavailable`, and so do waits by its clock."""
    ending = StopInterceptor(stopping)
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
