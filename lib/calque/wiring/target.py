"""Live objects of one target."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from socket import gethostname
from uuid import uuid4

from calque.adapters.delta.ledger import DeltaLedger
from calque.adapters.files.attempt import CopyTerms
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.first_seen import FirstSeen
from calque.adapters.metastore.server import MetastoreServer
from calque.config.keys import State
from calque.config.plugs import CallTerms, Source, Target
from calque.core.policy.admit import Admission
from calque.core.records.lease import renewed_after
from calque.engine.identity.directories import first_place
from calque.engine.lease.fence import CommandFence, Fence, FencedStorage
from calque.engine.lease.generations import CatalogLeases
from calque.engine.lease.keeper import Lease
from calque.engine.sides.claim_book import ClaimBook
from calque.engine.sides.narrowed import narrowed_source
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.errors import Refused
from calque.model.lease import Writer
from calque.model.policy import Policy, TargetCapabilities
from calque.model.state_places import TargetPlaces
from calque.ports import Catalog, Leases, Ledger, Storage, parts_of
from calque.ports.services import MetastoreInfo
from calque.wiring.kinds import TargetContext, WiringKinds
from calque.wiring.runtime import Runtime
from calque.wiring.source import SourceWiring
from calque.wiring.spark_windows import SparkSpread, WorkerOpening
from calque.wiring.state_folder import StateFolder


@dataclass(slots=True)
class TargetWiring:
    """What the plug of a target names, over the source that it follows, made when it is first asked for. Nothing
    connects before it is used. Spark leaves so many cores to other targets."""

    plug: Target
    source: SourceWiring
    folder: StateFolder
    runtime: Runtime
    leaves: int = 0
    writer_id: str = field(default_factory=lambda: uuid4().hex)
    """By which the lease and claims on directories know this process."""
    first_seen: FirstSeen = field(default_factory=FirstSeen)
    """The metastore, as this process met it first."""
    _side: TargetSide | None = None
    _lease: Lease | None = None
    _admission: Admission | None = None

    @property
    def places(self) -> TargetPlaces:
        return TargetPlaces(self.plug.name)

    def admission(self) -> Admission:
        """The policy's names, ready to be asked."""
        if self._admission is None:
            self._admission = self.plug.admission()
        return self._admission

    def side(self) -> TargetSide:
        """The target as the engine knows it; written to by whoever has the lease on it."""
        if self._side is None:
            self._side = self.side_behind(self.lease())
        return self._side

    def followed(self) -> SourceSide:
        """The source as the target's policy leaves it."""
        return narrowed_source(self.source.side(), self.admission().subset)

    def side_behind(self, fence: Fence, policy: Policy | None = None, ledger: DeltaLedger | None = None) -> TargetSide:
        """Written to as the fence permits; under the target's own policy and with its own ledger, where no other is
        given."""
        stopping, guard = threading.Event(), self.runtime.guard
        storage = self.runtime.storage(self.systems(), self._terms(), stopping.is_set, self.places.pool, self.leaves)
        parts = parts_of(guard.catalog(self.catalog(CallTerms(permit=fence.permit))))
        own_ledger, fenced_storage = guard.ledger(ledger or self.ledger()), guard.storage(FencedStorage(storage, fence))
        context = TargetContext(self.plug, self.folder, fenced_storage, storage, partial(next_epoch, own_ledger))
        for replaced in self.runtime.kinds.target_parts:
            parts = replaced(parts, context)
        return TargetSide.of(
            policy or self.plug.policy(),
            parts,
            own_ledger,
            fenced_storage,
            stopping,
            ClaimBook(own_ledger, self.plug.source, self.plug.name, self.writer_id),
            self.source.plug.keys.bounds(),
            self.runtime.kinds.formats,
        )

    def ledger(self) -> DeltaLedger:
        return DeltaLedger(self.folder.table(self.places.ledger), self.folder.table_options)

    def ledger_of_load(self, database: str, source: str) -> DeltaLedger:
        """Of dumps of the source into the database, which the target does not follow by itself."""
        return DeltaLedger(self.folder.table(self.places.ledger_of_load(database, source)), self.folder.table_options)

    def ledger_of_stream(
        self, database: str, source: str, source_database: str, is_loaded: Callable[[], bool]
    ) -> DeltaLedger:
        """The one of dumps of the source into the database. What an earlier version had of all loads of the source's
        database is that of the database which it was loaded into, as `is_loaded` says."""
        ledger = self.ledger_of_load(database, source)
        if ledger.last_epoch() is None and is_loaded():
            first = self.first_ledger_of_load(source_database)
            return first if first.last_epoch() is not None else ledger
        return ledger

    def first_ledger_of_load(self, database: str) -> DeltaLedger:
        """What earlier versions had of the first name under which dumps of a source's database were loaded."""
        return DeltaLedger(self.folder.table(self.places.first_ledger_of_load(database)), self.folder.table_options)

    def ledgers_of_loads(self) -> dict[str, DeltaLedger]:
        """Those of all streams of loads that the target ever had, by database and source."""
        ledgers: dict[str, DeltaLedger] = {}
        for database in self.folder.tables_below(self.places.loads):
            ledgers[database] = self.first_ledger_of_load(database)
            for source in self.folder.tables_below(f"{self.places.first_ledger_of_load(database)}/from"):
                ledgers[f"{database}/{source}"] = self.ledger_of_load(database, source)
        return ledgers

    def catalog_for_statements(self) -> Catalog:
        """For objects that are no replicas, and that anybody may write."""
        return self.runtime.guard.catalog(self.catalog(CallTerms()))

    def storage_for_statements(self) -> Storage:
        return self.runtime.guard.storage(self.runtime.storage(self.systems(), self._terms()))

    def server(self, terms: CallTerms = CallTerms()) -> MetastoreInfo:  # noqa: B008  (it is frozen)
        """What the metastore says of itself."""
        if self.plug.catalog is not None:
            return self.plug.catalog.server(terms)
        return MetastoreServer(self.client(terms))

    def impatient_server(self, seconds: float) -> MetastoreInfo:
        """The same through a connection of its own, on which an answer is waited for no longer than that."""
        return self.server(CallTerms(connect_timeout=seconds, call_timeout=seconds, connections=1))

    def systems(self) -> FileSystemSet:
        """What the storage opens: the target's own locations by its own options, all others by the source's."""
        keys = self.plug.keys
        locations = tuple(filter(None, (keys.warehouse, keys.external_base, *keys.locations.values())))
        keys_of_source = self.source.plug.keys
        own_locations = OwnLocations(locations, keys.storage) if self.admission().copies_some else OwnLocations()
        return FileSystemSet(
            keys_of_source.storage,
            own=own_locations,
            roots=self.source.plug.roots(self.source.pins_root(), *locations),
            most_read=keys_of_source.max_message,
            kinds=self.runtime.kinds.file_systems,
        )

    def spread(self) -> SparkSpread | None:
        """Prepares large windows in Spark's tasks; None without a session, and of a subset of the source."""
        if self.runtime.session is None or not self.admission().subset.is_all:
            return None
        sides = partial(sides_anew, self.source.plug, self.plug, self.folder.section, self.runtime.kinds)
        return SparkSpread(self.runtime.session, WorkerOpening(sides, self.source.journal().rows))

    # Who may write

    def lease(self) -> Lease:
        """It has to be taken."""
        if self._lease is None:
            self._lease = Lease(self.leases(), self.plug.name, self.plug.keys.lease)
        return self._lease

    def share_lease(self, other: TargetWiring) -> None:
        """Have the lease that the other has on the same target."""
        self._lease, self.writer_id = other.lease(), other.writer_id

    def deputy(self) -> CommandFence:
        """What a command needs that writes beside `run`."""
        return CommandFence(self.leases(), self.plug.name, self.folder.identity(), self.plug.keys.lease)

    def writer(self, proof: str) -> Writer:
        """This process."""
        return Writer(self.writer_id, gethostname(), os.getpid(), self.folder.identity(), proof)

    def living_writer(self) -> str:
        """Who may be writing at the target now, by the lease; empty where nobody is."""
        newest = self.leases().newest()
        return newest.writer.id if newest is not None and not newest.released else ""

    def leases(self) -> Leases:
        """Through a connection of its own, so that no long call holds up a renewal."""
        keys = self.plug.keys
        seconds = renewed_after(keys.lease)
        terms = CallTerms(connect_timeout=min(10.0, seconds), call_timeout=seconds, connections=1)
        catalog = self.catalog(terms)
        leases = CatalogLeases(catalog, self.plug.source, self.plug.name, keys.warehouse, self.first_place)
        return self.runtime.guard.leases(leases)

    def first_place(self, warehouse: str) -> str:
        """The spelling under which the warehouse was marked first."""
        if not self.admission().copies_some:
            return warehouse
        return first_place(self.storage_for_statements(), warehouse)

    def _terms(self) -> CopyTerms:
        """On which files are copied."""
        return CopyTerms(bandwidth=self.plug.keys.bandwidth, parallel=self.plug.keys.parallel_copies)

    def catalog(self, terms: CallTerms) -> Catalog:
        """The target's, with nothing around it."""
        if self.plug.catalog is not None:
            return self.plug.catalog.opened(terms)
        return HiveCatalog(self.client(terms), TargetCapabilities())

    def client(self, terms: CallTerms = CallTerms()) -> Client:  # noqa: B008  (it is frozen)
        """A client of the target's metastore. Raises `Refused` where the target is none."""
        keys = self.plug.keys
        if self.plug.catalog is not None:
            what = f"The target {self.plug.name} is no Hive metastore"
            raise Refused(
                what, "Privileges and marks of Hive are in one alone", 'Leave out grants = "follow" and marks'
            )
        return Client(
            ",".join(keys.metastore),
            keys.access(),
            connect_timeout=terms.connect_timeout,
            call_timeout=terms.call_timeout,
            connections=terms.connections,
            permit=terms.permit,
            first_seen=self.first_seen,
        )


def next_epoch(ledger: Ledger) -> int:
    """The number of the epoch that tells of what is done now."""
    last = ledger.last_epoch()
    return last.epoch + 1 if last is not None else 1


def sides_anew(source: Source, target: Target, state: State, kinds: WiringKinds) -> tuple[SourceSide, TargetSide]:
    """A target and its source, opened anew, also in other processes."""
    runtime = Runtime(kinds=kinds)
    folder = StateFolder(state, runtime.guard, kinds.file_systems)
    source_wiring = SourceWiring(source, folder, runtime)
    return source_wiring.side(), TargetWiring(target, source_wiring, folder, runtime).side()
