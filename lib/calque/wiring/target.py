"""The live objects of one target: `TargetWiring`."""

from __future__ import annotations

import logging
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
from calque.adapters.metastore.transactions import HiveReplicatedTransactions, HiveTransactionReader
from calque.config.keys import State
from calque.config.plugs import CallTerms, Source, Target
from calque.core.policy.admit import Admission, natively
from calque.core.records.lease import renewed_after
from calque.engine.identity.directories import first_place
from calque.engine.lease.fence import CommandFence, Fence, FencedStorage
from calque.engine.lease.generations import CatalogLeases
from calque.engine.lease.keeper import Lease
from calque.engine.sides.claim_book import ClaimBook
from calque.engine.sides.committed_journal import with_commits
from calque.engine.sides.sides import SourceSide, TargetSide, TargetTransactions
from calque.engine.sides.subset_ports import subset_source
from calque.engine.target.native_ability import why_not_native
from calque.errors import Refused
from calque.model.lease import Writer
from calque.model.policy import Policy, TargetCapabilities
from calque.model.records import TargetPolicies, one_of
from calque.model.state_places import TargetPlaces
from calque.ports import Catalog, Leases, Ledger, Storage, parts_of
from calque.ports.services import MetastoreInfo
from calque.wiring.kinds import TargetContext, WiringKinds
from calque.wiring.runtime import Runtime
from calque.wiring.source import SourceWiring
from calque.wiring.spark_windows import SparkSpread, WorkerOpening
from calque.wiring.state_folder import StateFolder

LOG = logging.getLogger(__name__)
TRANSACTIONS_OF = "calque.*"
"""The policy under which a metastore keeps the numbers of calque's transactions."""


@dataclass(slots=True)
class TargetWiring:
    """The live objects of one target, and of the source that it follows, each made when it is first asked for. Nothing
    connects before it is used. Spark leaves `leaves` cores to other targets."""

    plug: Target
    source: SourceWiring
    folder: StateFolder
    runtime: Runtime
    leaves: int = 0
    writer_id: str = field(default_factory=lambda: uuid4().hex)
    """The id by which the lease, and claims on directories, know this process."""
    first_seen: FirstSeen = field(default_factory=FirstSeen)
    """The id of the metastore that this process met first behind the target's addresses, so that another one is
    refused."""
    _side: TargetSide | None = None
    _lease: Lease | None = None
    _policy: Policy | None = None
    _admission: Admission | None = None

    @property
    def places(self) -> TargetPlaces:
        return TargetPlaces(self.plug.name)

    def admission(self) -> Admission:
        """Return the policy's rules for names, ready to be asked."""
        if self._admission is None:
            self._admission = Admission(self.policy())
        return self._admission

    def policy(self) -> Policy:
        """Return the target's policy. Where its ability decides over ACID tables, that is as the process found it that
        wrote to the target last (`try_native`)."""
        if self._policy is None:
            self._policy = self.plug.policy()
            if Admission(self._policy).has_auto:
                written, able = one_of(self.ledger().records(), TargetPolicies), natively(self._policy)
                if written is not None and any(terms.acid == able.acid for terms in written.policies):
                    self._policy = able
        return self._policy

    def try_native(self) -> None:
        """Try whether the target can have native replicas, where the policy leaves that to its ability. The side is
        made anew where it can, and could not before, or the other way round. The caller has the lease. Raises
        `Unavailable`."""
        policy = self.plug.policy()
        if not Admission(policy).has_auto:
            return
        if why := self.why_not_native(self.lease()):
            LOG.info("%s has no native replicas of ACID tables: %s", self.plug.name, why)
        else:
            policy = natively(policy)
        if policy != self.policy():
            self._policy, self._admission, self._side = policy, None, None

    def why_not_native(self, fence: Fence) -> str:
        """Return why the target can't have native replicas of ACID tables, empty where it can. Raises `Unavailable`."""
        catalog = self.runtime.guard.catalog(self.catalog(CallTerms(permit=fence.permit)))
        storage = self.runtime.storage(self.systems(), self._terms())
        return why_not_native(catalog, storage, self.transactions(fence), self.plug.keys.warehouse)

    def side(self) -> TargetSide:
        """Return the target as the engine knows it. Its effects begin only while this process has the lease."""
        if self._side is None:
            self._side = self.side_behind(self.lease())
        return self._side

    def followed(self) -> SourceSide:
        """Return the source as the target's policy narrows it, with the commits of transactions."""
        return subset_source(with_commits(self.source.side(), self.admission()), self.admission().subset)

    def side_behind(self, fence: Fence, policy: Policy | None = None, ledger: DeltaLedger | None = None) -> TargetSide:
        """Return the target as the engine knows it, with effects that begin only where `fence` permits them. It has the
        target's own policy and ledger where no other is given."""
        stopping, guard = threading.Event(), self.runtime.guard
        storage = self.runtime.storage(self.systems(), self._terms(), stopping.is_set, self.places.pool, self.leaves)
        parts = parts_of(guard.catalog(self.catalog(CallTerms(permit=fence.permit))))
        own_ledger, fenced_storage = guard.ledger(ledger or self.ledger()), guard.storage(FencedStorage(storage, fence))
        context = TargetContext(self.plug, self.folder, fenced_storage, storage, partial(next_epoch, own_ledger))
        for replaced in self.runtime.kinds.target_parts:
            parts = replaced(parts, context)
        return TargetSide.of(
            policy or self.policy(),
            parts,
            own_ledger,
            fenced_storage,
            stopping,
            ClaimBook(own_ledger, self.plug.source, self.plug.name, self.writer_id),
            self.source.plug.keys.bounds(),
            self.runtime.kinds.formats,
            self.transactions(fence) if self.admission().has_native else None,
        )

    def transactions(self, fence: Fence) -> TargetTransactions:
        """Return the transactions of the target's metastore. calque's own begin only where `fence` permits them. Raises
        `Refused` where the target is no metastore."""
        client = self.client(CallTerms(permit=fence.permit))
        writer = self.runtime.guard.transactions(HiveReplicatedTransactions(client, TRANSACTIONS_OF))
        return TargetTransactions(HiveTransactionReader(client), writer)

    def ledger(self) -> DeltaLedger:
        return DeltaLedger(self.folder.table(self.places.ledger), self.folder.table_options)

    def ledger_of_load(self, database: str, source: str) -> DeltaLedger:
        """Return the ledger of dumps of the source that are loaded into the database. The target does not follow that
        source by its log."""
        return DeltaLedger(self.folder.table(self.places.ledger_of_load(database, source)), self.folder.table_options)

    def ledger_of_stream(
        self, database: str, source: str, source_database: str, is_loaded: Callable[[], bool]
    ) -> DeltaLedger:
        """Return the ledger of dumps of `source` that are loaded into `database`.

        Early versions had one ledger for all loads of a source's database. That one is returned where it has epochs,
        `is_loaded` says that they are of loads into this database, and the newer ledger has none.
        """
        ledger = self.ledger_of_load(database, source)
        if ledger.last_epoch() is None and is_loaded():
            first = self.first_ledger_of_load(source_database)
            return first if first.last_epoch() is not None else ledger
        return ledger

    def first_ledger_of_load(self, database: str) -> DeltaLedger:
        """Return the ledger that early versions had for all loads of a source's `database`."""
        return DeltaLedger(self.folder.table(self.places.first_ledger_of_load(database)), self.folder.table_options)

    def ledgers_of_loads(self) -> dict[str, DeltaLedger]:
        """Return the ledgers of all streams of loads that the target ever had, by `DATABASE` for early ones, else by
        `DATABASE/SOURCE`."""
        ledgers: dict[str, DeltaLedger] = {}
        for database in self.folder.tables_below(self.places.loads):
            ledgers[database] = self.first_ledger_of_load(database)
            for source in self.folder.tables_below(f"{self.places.first_ledger_of_load(database)}/from"):
                ledgers[f"{database}/{source}"] = self.ledger_of_load(database, source)
        return ledgers

    def catalog_for_statements(self) -> Catalog:
        """Return the target's catalog without a fence, for objects that are no replicas, which any process may
        write."""
        return self.runtime.guard.catalog(self.catalog(CallTerms()))

    def storage_for_statements(self) -> Storage:
        return self.runtime.guard.storage(self.runtime.storage(self.systems(), self._terms()))

    def server(self, terms: CallTerms = CallTerms()) -> MetastoreInfo:  # noqa: B008  (it is frozen)
        """Return the server of the target, through a new client."""
        if self.plug.catalog is not None:
            return self.plug.catalog.server(terms)
        return MetastoreServer(self.client(terms))

    def impatient_server(self, seconds: float) -> MetastoreInfo:
        """Return the server of the target through a connection of its own, on which a call is given up after
        `seconds`."""
        return self.server(CallTerms(connect_timeout=seconds, call_timeout=seconds, connections=1))

    def systems(self) -> FileSystemSet:
        """Return the file systems of the target. Its own locations are opened by its own options, and all others by the
        source's options."""
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
        """Return the port that prepares large windows in Spark's tasks; None without a session, and for a target that
        takes a subset of the source."""
        if self.runtime.session is None or not self.admission().subset.is_all:
            return None
        sides = partial(sides_anew, self.source.plug, self.plug, self.folder.section, self.runtime.kinds)
        return SparkSpread(self.runtime.session, WorkerOpening(sides, self.source.journal().rows))

    # Who may write

    def lease(self) -> Lease:
        """Return this process's lease on the target, the same one at each call. The caller has to take it."""
        if self._lease is None:
            self._lease = Lease(self.leases(), self.plug.name, self.plug.keys.lease)
        return self._lease

    def share_lease(self, other: TargetWiring) -> None:
        """Use the lease that `other` has on the same target, and its id as a writer."""
        self._lease, self.writer_id = other.lease(), other.writer_id

    def deputy(self) -> CommandFence:
        """Return the fence for a command that writes beside `run`, or while none runs."""
        return CommandFence(self.leases(), self.plug.name, self.folder.identity(), self.plug.keys.lease)

    def writer(self, proof: str) -> Writer:
        """Return this process as a writer of the lease. `proof` is that of its role
        (`control.process_locks.Roles.proof`)."""
        return Writer(self.writer_id, gethostname(), os.getpid(), self.folder.identity(), proof)

    def living_writer(self) -> str:
        """Return the id of the writer that may write to the target now, by the lease; empty where none has it."""
        newest = self.leases().newest()
        return newest.writer.id if newest is not None and not newest.released else ""

    def leases(self) -> Leases:
        """Return the generations of the lease, through a connection of their own, so that no long call holds up a
        renewal."""
        keys = self.plug.keys
        seconds = renewed_after(keys.lease)
        terms = CallTerms(connect_timeout=min(10.0, seconds), call_timeout=seconds, connections=1)
        catalog = self.catalog(terms)
        leases = CatalogLeases(catalog, self.plug.source, self.plug.name, keys.warehouse, self.first_place)
        return self.runtime.guard.leases(leases)

    def first_place(self, warehouse: str) -> str:
        """Return the spelling under which the warehouse was marked first. Names in the target's metastore are made of
        it."""
        if not self.admission().copies_some:
            return warehouse
        return first_place(self.storage_for_statements(), warehouse)

    def _terms(self) -> CopyTerms:
        """Return the bandwidth, the number of copies at a time, and what proves them."""
        keys = self.plug.keys
        return CopyTerms(bandwidth=keys.bandwidth, parallel=keys.parallel_copies, proof=keys.verify_copies)

    def catalog(self, terms: CallTerms) -> Catalog:
        """Return a new catalog of the target, without a fence or any other interceptor."""
        if self.plug.catalog is not None:
            return self.plug.catalog.opened(terms)
        return HiveCatalog(self.client(terms), TargetCapabilities())

    def client(self, terms: CallTerms = CallTerms()) -> Client:  # noqa: B008  (it is frozen)
        """Return a new client of the target's metastore. Raises `Refused` where the target is no metastore."""
        keys = self.plug.keys
        if self.plug.catalog is not None:
            what = f"The target {self.plug.name} is no Hive metastore"
            raise Refused(what, "Privileges are in one alone", 'Leave out grants = "follow"')
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
    """Return the number of the epoch that will tell of what is done now."""
    last = ledger.last_epoch()
    return last.epoch + 1 if last is not None else 1


def sides_anew(source: Source, target: Target, state: State, kinds: WiringKinds) -> tuple[SourceSide, TargetSide]:
    """Open a source and its target anew, also in other processes, and return them as the engine knows them."""
    runtime = Runtime(kinds=kinds)
    folder = StateFolder(state, runtime.guard, kinds.file_systems)
    target_wiring = TargetWiring(target, SourceWiring(source, folder, runtime), folder, runtime)
    return target_wiring.followed(), target_wiring.side()
